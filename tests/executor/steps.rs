//! Steps that run real commands: what becomes of what they leave.

use std::os::unix::fs::PermissionsExt;

use rebuild_model::error::{Class, Error};
use rebuild_model::step::StepId;

use crate::lab::{Lab, plain, shell, wait_until};

fn gone(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()));
    status.map_or(true, |text| text.contains("State:\tZ") || text.contains("State:\tX"))
}

fn fails(lab: &Lab, script: &str) -> Error {
    lab.run(vec![shell("a", &[], script)]).unwrap_err()
}

#[test]
fn a_process_that_outlives_its_step_is_ended() {
    let lab = Lab::new(1);
    let pid = lab.text("pid");
    lab.run(vec![shell("a", &[], &format!("sleep 300 & echo $$! > {pid}; echo > ${{out}}/o"))]).unwrap();
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(wait_until(|| gone(&pid)), "{pid} lives on");
}

#[test]
fn commands_of_a_step_run_one_after_another_until_one_fails() {
    let lab = Lab::new(1);
    let mut step = shell("a", &[], "echo 1 > ${out}/o");
    let more = shell("a", &[], "echo 2 >> ${out}/o; exit 4");
    let never = shell("a", &[], "echo 3 >> ${out}/o");
    let rebuild_model::step::Action::Run(run) = &mut step.action else { unreachable!() };
    for other in [more, never] {
        let rebuild_model::step::Action::Run(other) = other.action else { unreachable!() };
        run.commands.extend(other.commands);
    }
    let error = lab.run(vec![step]).unwrap_err();
    assert_eq!(error.to_string(), "step a: /bin/sh ended with exit code 4");
    assert_eq!(std::fs::read_to_string(lab.path("work/tmp/a/1/out/o")).unwrap(), "1\n2\n");
    assert!(!lab.path("work/out/a").exists());
}

#[test]
fn a_program_that_is_not_there_is_the_hosts_fault() {
    let lab = Lab::new(1);
    let mut step = plain("a", &[]);
    let rebuild_model::step::Action::Run(run) = &mut step.action else { unreachable!() };
    run.commands = vec![vec!["/no/such/program".parse().unwrap()]];
    let error = lab.run(vec![step]).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.class()),
        ("step a: cannot start /no/such/program", Class::Preflight)
    );
    assert_eq!(error.causes(), ["No such file or directory (os error 2)"]);
}

#[test]
fn the_end_of_the_output_is_shown_and_no_more() {
    let lab = Lab::new(1);
    let error = fails(&lab, "seq 1 100000; echo last words >&2; exit 1");
    let detail = error.detail().unwrap();
    assert_eq!(detail.lines().count(), 25);
    assert!(detail.ends_with("100000\nlast words"), "{detail}");
    let log = std::fs::read_to_string(lab.path("work/logs/a.log")).unwrap();
    assert!(log.lines().count() > 100_000);
}

#[test]
fn what_known_messages_mean_is_said() {
    for (message, meaning) in [
        ("cc1plus: fatal error: No space left on device", "the disk is full; "),
        ("MemoryError", "it ran out of memory; try fewer --jobs; "),
        ("Temporary failure in name resolution", "this step has no network; "),
    ] {
        let hint = fails(&Lab::new(1), &format!("echo '{message}'; exit 1")).hint().unwrap();
        assert!(hint.starts_with(meaning), "{hint}");
    }
}

#[test]
fn a_full_disk_in_our_own_writes_says_so_too() {
    use rebuild_model::error::Fault;
    use rebuild_model::exec::StepError;
    let source = std::fs::write("/dev/full", "x").unwrap_err();
    let error = StepError::Io { path: "out/a".into(), source };
    assert!(error.hint().unwrap().starts_with("the disk is full"));
    assert_eq!(error.class(), Class::Step);
}

#[test]
fn a_step_has_no_standard_input_and_a_known_umask() {
    let lab = Lab::new(1);
    let script = "cat > ${out}/o; umask >> ${out}/o; echo x > ${tmp}/f; stat -c %a ${tmp}/f >> ${out}/o";
    lab.run(vec![shell("a", &[], script)]).unwrap();
    assert_eq!(std::fs::read_to_string(lab.path("work/out/a/o")).unwrap(), "0022\n644\n");
}

#[test]
fn trees_that_a_tool_made_read_only_can_be_made_again() {
    let lab = Lab::new(1);
    let script =
        |code: u8| format!("mkdir -p ${{out}}/o/deep; echo > ${{out}}/o/deep/f; chmod -R a-w ${{out}}/o; exit {code}");
    fails(&lab, &script(1));
    assert_eq!(std::fs::metadata(lab.path("work/tmp/a/1/out/o")).unwrap().permissions().mode() & 0o222, 0);
    lab.run(vec![shell("a", &[], &script(0))]).unwrap();
    lab.run(vec![shell("a", &[], &format!("true; {}", script(0)))]).unwrap();
}

#[test]
fn what_a_step_takes_away_from_its_input_is_missed() {
    let lab = Lab::new(1);
    let steps = vec![
        shell("a", &[], "mkdir ${out}/o; echo > ${out}/o/f"),
        shell("b", &["a"], "rm ${step:a/o}/f; echo > ${out}/o"),
    ];
    let error = lab.run(steps).unwrap_err();
    assert_eq!(error.to_string(), "step b: changed out/a/o/f, which step a made");
}

#[test]
fn a_pipe_is_not_an_output() {
    let error = fails(&Lab::new(1), "mkfifo ${out}/o");
    assert_eq!(error.class(), Class::Step);
    assert!(error.causes()[0].ends_with("is neither a file, a directory nor a symbolic link"), "{:?}", error.causes());
    let error = fails(&Lab::new(1), "mkdir ${out}/o; mkfifo ${out}/o/p");
    assert!(error.causes()[0].contains("o/p is neither"), "{:?}", error.causes());
}

#[test]
fn links_are_outputs_and_are_not_followed() {
    let lab = Lab::new(1);
    let secret = lab.path("secret");
    std::fs::write(&secret, "1").unwrap();
    let steps = || vec![shell("a", &[], &format!("ln -s {} ${{out}}/o", secret.display())), plain("b", &["a"])];
    lab.run(steps()).unwrap();
    std::fs::write(&secret, "2").unwrap();
    // Another content behind the link is not another output.
    assert!(lab.run(steps()).unwrap().ran.is_empty());
}

#[test]
fn an_equal_result_does_not_run_its_readers_again() {
    let lab = Lab::new(1);
    lab.run(vec![shell("a", &[], "echo 1 > ${out}/o"), plain("b", &["a"])]).unwrap();
    let finished = lab.run(vec![shell("a", &[], "echo $$((2-1)) > ${out}/o"), plain("b", &["a"])]).unwrap();
    assert_eq!(finished.ran.iter().map(StepId::as_str).collect::<Vec<_>>(), ["a"]);
    let finished = lab.run(vec![shell("a", &[], "echo 2 > ${out}/o"), plain("b", &["a"])]).unwrap();
    assert_eq!(finished.ran.len(), 2);
}

#[test]
fn a_step_that_cannot_fit_on_the_disk_is_not_begun() {
    let lab = Lab::new(1);
    let mut step = plain("a", &[]);
    step.cost.disk_mib = u32::MAX;
    let error = lab.run(vec![step]).unwrap_err();
    assert_eq!(error.class(), Class::Preflight);
    assert!(error.to_string().contains("4294967295 MiB are needed"), "{error}");
}
