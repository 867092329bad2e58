//! Function bodies: which of one module is which of the other, and where they part.

use std::collections::{BTreeMap, HashMap};

use wasmparser::Operator;

use super::memory::Moves;
use super::module::{Function, Module};
use crate::diff::finding::Sink;

/// Compares the bodies of two modules' functions.
///
/// Data that was put in or taken out moves all that follows it, and every function that names an
/// address with it: `shifts` tells those apart from the others.
pub(super) fn compare(before: &Module, after: &Module, shifts: &Moves, sink: &mut Sink) {
    let pairs = align(&before.functions, &after.functions);
    let map: BTreeMap<usize, usize> = pairs.iter().filter_map(|(one, other)| Some(((*one)?, (*other)?))).collect();
    let (mut renumbered, mut moved, mut changed) = (0_u64, 0_u64, 0_u64);
    for (one, other) in &pairs {
        match (one, other) {
            (Some(one), Some(other)) => {
                let (first, second) = (&before.functions[*one], &after.functions[*other]);
                if first.body.as_bytes() == second.body.as_bytes() && first.signature == second.signature {
                    continue;
                }
                let bodies = Bodies { before, after, map: &map, shifts };
                match bodies.compare(first, second) {
                    Difference::Renumbered => renumbered += 1,
                    Difference::Moved => moved += 1,
                    Difference::Lines(_) if sink.is_full() => {
                        changed += 1;
                        sink.leave_out(1);
                    }
                    Difference::Lines(lines) => {
                        changed += 1;
                        let size = |function: &Function| format!("{} bytes", function.body.as_bytes().len());
                        let (name, other) = (shown(before, *one), shown(after, *other));
                        let name = if name == other { name } else { format!("{name} → {other}") };
                        let (one, other) = (size(first), size(second));
                        let told = one != other;
                        sink.add_lines(&name, told.then_some(&one), told.then_some(&other), lines);
                    }
                }
            }
            (one, other) => {
                let name = one.map_or_else(String::new, |one| shown(before, one))
                    + &other.map_or_else(String::new, |other| shown(after, other));
                let size = |module: &Module, index: &Option<usize>| {
                    index.map(|index| format!("{} bytes", module.functions[index].body.as_bytes().len()))
                };
                sink.add(&name, size(before, one).as_deref(), size(after, other).as_deref());
            }
        }
    }
    if renumbered > 0 {
        let lines = vec![format!("{renumbered} functions differ only in the numbers of what they call or of types")];
        sink.add_lines("renumbered", None, None, lines);
    }
    if moved > 0 {
        let lines = vec![format!("{moved} functions differ only in the addresses of data that lies elsewhere")];
        sink.add_lines("moved", None, None, lines);
    }
    if changed > 1 {
        let total = before.functions.len().max(after.functions.len());
        sink.add_lines("altogether", None, None, vec![format!("{changed} of {total} functions differ")]);
    }
}

fn shown(module: &Module, defined: usize) -> String {
    let index = module.imported + defined;
    match &module.functions[defined].name {
        Some(name) => format!("function {index} {name}"),
        None => format!("function {index}"),
    }
}

type Pair = (Option<usize>, Option<usize>);

/// Pairs functions: by name where both have it once; the others by equal bodies that keep their
/// order, and by place between those.
fn align(before: &[Function], after: &[Function]) -> Vec<Pair> {
    let unique = |functions: &[Function]| {
        let mut found: BTreeMap<String, Option<usize>> = BTreeMap::new();
        for (index, function) in functions.iter().enumerate() {
            if let Some(name) = &function.name {
                found.entry(name.clone()).and_modify(|place| *place = None).or_insert(Some(index));
            }
        }
        found
    };
    let (one, other) = (unique(before), unique(after));
    let mut pairs: Vec<Pair> = Vec::new();
    for (name, index) in &one {
        if let (Some(index), Some(Some(second))) = (index, other.get(name)) {
            pairs.push((Some(*index), Some(*second)));
        }
    }
    let left = |side: fn(&Pair) -> Option<usize>, count: usize, pairs: &[Pair]| -> Vec<usize> {
        let taken: std::collections::BTreeSet<usize> = pairs.iter().filter_map(side).collect();
        (0..count).filter(|index| !taken.contains(index)).collect()
    };
    let (rest, others) = (left(|pair| pair.0, before.len(), &pairs), left(|pair| pair.1, after.len(), &pairs));
    align_by_body(before, after, &rest, &others, &mut pairs);
    pairs.sort_by_key(|(one, other)| (one.or(*other), *other));
    pairs
}

fn align_by_body(before: &[Function], after: &[Function], rest: &[usize], others: &[usize], pairs: &mut Vec<Pair>) {
    let body = |functions: &[Function<'_>], index: usize| functions[index].body.as_bytes().to_vec();
    // Positions of bodies that each side has once.
    let mut places: HashMap<Vec<u8>, [Vec<usize>; 2]> = HashMap::new();
    for (side, (functions, indices)) in [(before, rest), (after, others)].into_iter().enumerate() {
        for (position, index) in indices.iter().enumerate() {
            places.entry(body(functions, *index)).or_default()[side].push(position);
        }
    }
    let mut anchors: Vec<(usize, usize)> = places
        .into_values()
        .filter_map(|[one, other]| match (&one[..], &other[..]) {
            ([one], [other]) => Some((*one, *other)),
            _ => None,
        })
        .collect();
    anchors.sort_unstable();
    let mut anchors = increasing(&anchors);
    anchors.push((rest.len(), others.len()));
    let (mut from, mut other_from) = (0, 0);
    for (to, other_to) in anchors {
        let (gap, other_gap) = (&rest[from..to], &others[other_from..other_to]);
        for position in 0..gap.len().max(other_gap.len()) {
            pairs.push((gap.get(position).copied(), other_gap.get(position).copied()));
        }
        if let (Some(one), Some(other)) = (rest.get(to), others.get(other_to)) {
            pairs.push((Some(*one), Some(*other)));
        }
        (from, other_from) = ((to + 1).min(rest.len()), (other_to + 1).min(others.len()));
    }
}

/// The longest part of `pairs`, sorted by the first, in which the second rises too.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The index of the last pair of the best run of each length, and each pair's predecessor.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        previous.push(length.checked_sub(1).map(|length| ends[length]));
        if length == ends.len() { ends.push(index) } else { ends[length] = index }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        run.push(pairs[index]);
        next = previous[index];
    }
    run.reverse();
    run
}

struct Bodies<'a> {
    before: &'a Module<'a>,
    after: &'a Module<'a>,
    /// Which function of the second module is which of the first, by place among those with bodies.
    map: &'a BTreeMap<usize, usize>,
    shifts: &'a Moves,
}

/// How two bodies of a function differ.
enum Difference {
    /// In numbers of functions and types only.
    Renumbered,
    /// In addresses of data, too.
    Moved,
    /// As these lines say.
    Lines(Vec<String>),
}

/// How many instructions are shown of each side.
const SHOWN: usize = 4;

impl Bodies<'_> {
    /// Where two bodies part.
    fn compare(&self, before: &Function, after: &Function) -> Difference {
        let read = |function: &Function<'_>| {
            let reader = function.body.get_operators_reader().ok()?;
            reader.into_iter().collect::<Result<Vec<_>, _>>().ok().map(|operators| operators.iter().map(own).collect())
        };
        let locals = |function: &Function| {
            let locals = function.body.get_locals_reader().ok()?;
            Some(
                locals.into_iter().map_while(Result::ok).map(|(count, ty)| format!("{count} {ty}")).collect::<Vec<_>>(),
            )
        };
        let mut lines = Vec::new();
        if before.signature != after.signature {
            lines.push(format!("signature: {} → {}", before.signature, after.signature));
        }
        let (one, other) = (locals(before), locals(after));
        if one != other {
            let show = |locals: Option<Vec<String>>| locals.unwrap_or_default().join(", ");
            lines.push(format!("locals: {} → {}", show(one), show(other)));
        }
        let (one, other): (Option<Vec<Instruction>>, Option<Vec<Instruction>>) = (read(before), read(after));
        let (Some(one), Some(other)) = (one, other) else {
            lines.push("its instructions cannot be read".to_owned());
            return Difference::Lines(lines);
        };
        let moved = std::cell::Cell::new(false);
        let same = |pair: (&Instruction, &Instruction)| {
            let shifted = self.moved(pair.0, pair.1);
            moved.set(moved.get() || shifted);
            shifted || self.same(pair.0, pair.1)
        };
        let start = one.iter().zip(&other).take_while(|pair| same(*pair)).count();
        let end = one[start..].iter().rev().zip(other[start..].iter().rev()).take_while(|pair| same(*pair)).count();
        let (first, second) = (&one[start..one.len() - end], &other[start..other.len() - end]);
        if !first.is_empty() || !second.is_empty() {
            lines.push(format!(
                "from instruction {} of {}: {} instructions became {}",
                start + 1,
                one.len(),
                first.len(),
                second.len()
            ));
            for (sign, instructions, module) in [('-', first, self.before), ('+', second, self.after)] {
                for instruction in instructions.iter().take(SHOWN) {
                    lines.push(format!("{sign}{}", instruction.show(module)));
                }
                if instructions.len() > SHOWN {
                    lines.push(format!("{sign}… {} more", instructions.len() - SHOWN));
                }
            }
        }
        match (lines.is_empty(), moved.get()) {
            (true, true) => Difference::Moved,
            (true, false) => Difference::Renumbered,
            (false, _) => Difference::Lines(lines),
        }
    }

    /// Whether both name the address of data that lies elsewhere now.
    fn moved(&self, one: &Instruction, other: &Instruction) -> bool {
        match (one, other) {
            (Instruction::Address(one, from), Instruction::Address(other, to)) => {
                one == other && self.shifts.explain(*from, *to)
            }
            _ => false,
        }
    }

    fn same(&self, one: &Instruction, other: &Instruction) -> bool {
        match (one, other) {
            (Instruction::Call(verb, one), Instruction::Call(other_verb, other)) => {
                verb == other_verb && self.same_function(*one, *other)
            }
            (Instruction::Indirect(verb, one, table), Instruction::Indirect(other_verb, other, other_table)) => {
                verb == other_verb
                    && table == other_table
                    && self.before.signature(*one) == self.after.signature(*other)
            }
            (Instruction::Address(one, from), Instruction::Address(other, to)) => one == other && from == to,
            (Instruction::Plain(one), Instruction::Plain(other)) => one == other,
            _ => false,
        }
    }

    fn same_function(&self, one: u32, other: u32) -> bool {
        let (first, second) = (one as usize, other as usize);
        match (first.checked_sub(self.before.imported), second.checked_sub(self.after.imported)) {
            (Some(first), Some(second)) => self.map.get(&first) == Some(&second),
            (None, None) => self.before.name_of(one) == self.after.name_of(other),
            _ => false,
        }
    }
}

/// An instruction, with what is a number only because of what else is in the module set apart.
enum Instruction {
    Call(&'static str, u32),
    Indirect(&'static str, u32, u32),
    /// One that may name an address: without it, and the address.
    Address(String, u64),
    Plain(String),
}

fn own(operator: &Operator) -> Instruction {
    match operator {
        Operator::Call { function_index } => Instruction::Call("call", *function_index),
        Operator::ReturnCall { function_index } => Instruction::Call("return_call", *function_index),
        Operator::RefFunc { function_index } => Instruction::Call("ref.func", *function_index),
        Operator::CallIndirect { type_index, table_index } => {
            Instruction::Indirect("call_indirect", *type_index, *table_index)
        }
        Operator::I32Const { value } => Instruction::Address("I32Const".to_owned(), value.cast_unsigned().into()),
        other => {
            let text = format!("{other:?}");
            // Loads and stores are many; each shows the offset in the same way.
            match text.split_once("offset: ").and_then(|(head, rest)| Some((head, rest.split_once(',')?))) {
                Some((head, (offset, tail))) => match offset.parse() {
                    Ok(address) => Instruction::Address(format!("{head}offset: …,{tail}"), address),
                    Err(_) => Instruction::Plain(text),
                },
                None => Instruction::Plain(text),
            }
        }
    }
}

impl Instruction {
    fn show(&self, module: &Module) -> String {
        match self {
            Self::Call(verb, index) => format!("{verb} {}", module.name_of(*index)),
            Self::Indirect(verb, index, table) => format!("{verb} {} of table {table}", module.signature(*index)),
            Self::Address(text, value) if text == "I32Const" => {
                format!("i32.const {}", u32::try_from(*value).unwrap_or(u32::MAX).cast_signed())
            }
            Self::Address(text, value) => text.replace('…', &value.to_string()),
            Self::Plain(text) => text.clone(),
        }
    }
}
