//! Plans that are none.

use insta::assert_snapshot;
use rebuild_model::step::Step;

use crate::lab::{plain, plan, shell};

fn refused(steps: Vec<Step>) -> String {
    let error = plan(steps).unwrap_err();
    assert_eq!(error.class().exit_code(), 1);
    error.to_string()
}

#[test]
fn steps_that_wait_for_each_other_are_named_in_order() {
    let steps =
        vec![plain("a", &[]), plain("b", &["d", "a"]), plain("c", &["b"]), plain("d", &["c"]), plain("e", &["d"])];
    assert_snapshot!(refused(steps), @"cycle of steps: b → d → c → b");
    assert_snapshot!(refused(vec![plain("a", &["a"])]), @"cycle of steps: a → a");
}

#[test]
fn ids_and_references_are_checked() {
    assert_snapshot!(refused(vec![plain("a", &[]), plain("a", &[])]), @"duplicate id: two steps are called a");
    assert_snapshot!(refused(vec![plain("a", &["b"])]), @"step a reads b/o, which no step makes");
    let uses = shell("b", &[], "cat ${step:a/o}");
    assert_snapshot!(refused(vec![plain("a", &[]), uses]), @"step b uses a/o without declaring it as input");
    assert_snapshot!(refused(vec![shell("a", &[], "${tool:cc}")]), @"step a runs the tool `cc`, which is not pinned");
    let mut other = shell("b", &["a"], "cat ${step:a/p}");
    other.inputs[0].output = "p".into();
    assert_snapshot!(refused(vec![plain("a", &[]), other]), @"step b reads a/p, which no step makes");
}

#[test]
fn a_plan_survives_being_written_and_read() {
    let made = plan(vec![plain("b", &["a"]), plain("a", &[])]).unwrap();
    let ids: Vec<_> = made.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    let read: rebuild_model::plan::Plan = serde_json::from_str(&serde_json::to_string(&made).unwrap()).unwrap();
    assert_eq!(read, made);
    assert_eq!(read.digest(), made.digest());
}
