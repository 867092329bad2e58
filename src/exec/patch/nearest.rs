//! Where else in a file the lines of a hunk stand, or lines much like them.

/// How alike two lines are, in percent, so that a sum over a window can be compared with another.
pub type Likeness = u32;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Lines before it.
    pub first: usize,
    /// How many expected lines stand in it, under the reading it was found with.
    pub equal: usize,
    /// How many more such places there are, when every line stands there.
    pub others: usize,
}

/// How lines are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Byte for byte.
    Exact,
    /// Without regard to LF or CR LF, or to a missing line feed.
    Endings,
    /// Without regard to any white space.
    Spaces,
}

impl Reading {
    /// Whether two lines are the same under this reading.
    pub fn same(self, one: &[u8], other: &[u8]) -> bool {
        self.form(one) == self.form(other)
    }

    fn form(self, line: &[u8]) -> Vec<u8> {
        match self {
            Self::Exact => line.to_vec(),
            Self::Endings => {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                line.strip_suffix(b"\r").unwrap_or(line).to_vec()
            }
            Self::Spaces => line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect(),
        }
    }
}

/// The place nearest to `first` where all `expected` lines stand, under the strictest reading that
/// finds one.
pub fn find_whole(expected: &[&[u8]], lines: &[&[u8]], first: usize) -> Option<(Reading, Window)> {
    if expected.is_empty() {
        return None;
    }
    [Reading::Exact, Reading::Endings, Reading::Spaces].into_iter().find_map(|reading| {
        let wanted: Vec<_> = expected.iter().map(|line| reading.form(line)).collect();
        let found: Vec<_> = lines.iter().map(|line| reading.form(line)).collect();
        let places: Vec<usize> =
            found.windows(wanted.len()).enumerate().filter(|(_, window)| *window == wanted).map(|(at, _)| at).collect();
        let nearest = *places.iter().min_by_key(|at| at.abs_diff(first))?;
        Some((reading, Window { first: nearest, equal: wanted.len(), others: places.len() - 1 }))
    })
}

/// The place whose lines are most like the `expected` ones; nothing when no place resembles them.
pub fn find_similar(expected: &[&[u8]], lines: &[&[u8]], first: usize) -> Option<Window> {
    /// Below this average there is no resemblance worth showing.
    const LEAST: Likeness = 35;
    /// Pairs of lines that are compared letter by letter. Beyond, only equal lines count.
    const PAIRS: usize = 1_000_000;
    let thorough = expected.len().saturating_mul(lines.len()) <= PAIRS;
    let wanted: Vec<Profile> = expected.iter().map(|line| Profile::of(line, thorough)).collect();
    let found: Vec<Profile> = lines.iter().map(|line| Profile::of(line, thorough)).collect();
    let score =
        |at: usize| -> Likeness { wanted.iter().zip(&found[at..]).map(|(one, other)| one.likeness(other)).sum() };
    let best = (0..lines.len())
        .map(|at| (score(at), at))
        .max_by_key(|&(score, at)| (score, std::cmp::Reverse(at.abs_diff(first))));
    let (score, at) = best?;
    let most: Likeness = wanted.iter().map(|profile| profile.weight).sum();
    let equal = expected.iter().zip(&lines[at..]).filter(|(one, other)| one == other).count();
    (most > 0 && score * 100 >= most * LEAST).then_some(Window { first: at, equal, others: 0 })
}

/// What is compared of a line: its text without white space, and its pairs of neighbouring bytes.
struct Profile {
    text: Vec<u8>,
    pairs: Vec<[u8; 2]>,
    weight: Likeness,
}

impl Profile {
    fn of(line: &[u8], thorough: bool) -> Self {
        let text = Reading::Spaces.form(line);
        let mut pairs: Vec<[u8; 2]> = Vec::new();
        if thorough {
            pairs.extend(text.windows(2).map(|pair| [pair[0], pair[1]]));
            pairs.sort_unstable();
        }
        // Every file is full of empty lines and lone braces: they tell little about a place.
        let weight = match text.len() {
            0 => 2,
            1 | 2 => 10,
            _ => 100,
        };
        Self { text, pairs, weight }
    }

    /// The Sørensen–Dice coefficient of the pairs, weighed by how much the line tells.
    fn likeness(&self, other: &Self) -> Likeness {
        if self.text == other.text {
            return self.weight;
        }
        let total = self.pairs.len() + other.pairs.len();
        if total == 0 || self.text.len() < 3 {
            return 0;
        }
        let (mut one, mut two, mut shared) = (0, 0, 0);
        while let (Some(a), Some(b)) = (self.pairs.get(one), other.pairs.get(two)) {
            match a.cmp(b) {
                std::cmp::Ordering::Less => one += 1,
                std::cmp::Ordering::Greater => two += 1,
                std::cmp::Ordering::Equal => (one, two, shared) = (one + 1, two + 1, shared + 1),
            }
        }
        let percent = Likeness::try_from(shared * 200 / total).unwrap_or(100);
        // Two unrelated lines of code share a good part of their pairs.
        if percent < 40 { 0 } else { percent.min(99) * self.weight / 100 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<&[u8]> {
        super::super::place::split_lines(text.as_bytes())
    }

    #[test]
    fn the_nearest_of_several_whole_places_is_found() {
        let file = lines("a\nb\nx\na\nb\ny\na\nb\n");
        let found = find_whole(&lines("a\nb\n"), &file, 4);
        assert_eq!(found, Some((Reading::Exact, Window { first: 3, equal: 2, others: 2 })));
        assert_eq!(find_whole(&lines("b\na\n"), &file, 0), None);
    }

    #[test]
    fn the_strictest_reading_wins() {
        let file = lines("a b\r\nc\r\nx\na  b\nc\n");
        assert_eq!(find_whole(&lines("a b\nc\n"), &file, 3).unwrap().0, Reading::Endings);
        assert_eq!(find_whole(&lines("a b\nc\n"), &file, 3).unwrap().1.first, 0);
        assert_eq!(find_whole(&lines("ab\nc\nx\n"), &file, 3).unwrap().0, Reading::Spaces);
    }

    #[test]
    fn a_changed_line_does_not_hide_the_place() {
        let file = lines("}\n\nint one(int x) {\n  return x + 1;\n}\n\nint two(int x) {\n  return x + 2;\n}\n");
        let wanted = lines("int two(long x) {\n  return x + 2;\n}\n");
        assert_eq!(find_similar(&wanted, &file, 0), Some(Window { first: 6, equal: 2, others: 0 }));
        assert_eq!(find_similar(&lines("nothing here resembles\n"), &file, 0), None);
        assert_eq!(find_similar(&wanted, &[], 0), None);
    }
}
