//! Linear memory as a module's data segments make it.
//!
//! Optimizers split a segment wherever it has a long run of zeros, and linkers order them as they
//! like: a string of the program may lie in several segments.

/// The longest gap between two segments that counts as zeros between them. A longer one separates
/// runs, so that the image of a module is never much larger than the module.
const GAP: u64 = 256;

/// What linear memory begins with: runs of bytes by address. Between them lie zeros.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    runs: Vec<Run>,
}

/// A run of bytes without a long gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Where it begins in linear memory; `None` when only a run of the program decides that.
    pub address: Option<u64>,
    /// What stands there.
    pub bytes: Vec<u8>,
}

/// A data segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment<'a> {
    pub address: Option<u64>,
    pub bytes: &'a [u8],
}

impl Image {
    /// Its runs in order of their addresses, then those without one.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Bytes in it, the zeros in short gaps included.
    pub fn size(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes.len() as u64).sum()
    }

    /// Every place of `needle`: the run, and the offset in it.
    pub fn find<'a>(&'a self, needle: &'a [u8]) -> impl Iterator<Item = (&'a Run, usize)> {
        self.runs.iter().flat_map(move |run| find_all(&run.bytes, needle).map(move |at| (run, at)))
    }

    /// The image that `segments` make; where two overlap the later one stands, as when the module is
    /// instantiated.
    pub(super) fn of(segments: &[Segment<'_>]) -> Self {
        let placed = segments.iter().filter_map(|segment| Some((segment.address?, segment.bytes)));
        let placed =
            placed.filter(|(address, bytes)| !bytes.is_empty() && address.checked_add(bytes.len() as u64).is_some());
        let mut extents: Vec<(u64, u64)> =
            placed.clone().map(|(address, bytes)| (address, address + bytes.len() as u64)).collect();
        extents.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (start, end) in extents {
            match merged.last_mut() {
                Some(last) if start <= last.1.saturating_add(GAP) => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        // A merged extent is at most the segments in it and the gaps between them, so it fits.
        let length = |extent: &(u64, u64)| usize::try_from(extent.1 - extent.0).unwrap_or(0);
        let mut runs: Vec<Run> =
            merged.iter().map(|extent| Run { address: Some(extent.0), bytes: vec![0; length(extent)] }).collect();
        for (address, bytes) in placed {
            let index = merged.partition_point(|extent| extent.0 <= address).saturating_sub(1);
            let place = runs.get_mut(index).and_then(|run| {
                let from = usize::try_from(address - run.address?).ok()?;
                run.bytes.get_mut(from..from.checked_add(bytes.len())?)
            });
            if let Some(place) = place {
                place.copy_from_slice(bytes);
            }
        }
        let floating = segments.iter().filter(|segment| segment.address.is_none());
        runs.extend(floating.map(|segment| Run { address: None, bytes: segment.bytes.to_vec() }));
        Self { runs }
    }
}

impl Run {
    /// Where the byte at `offset` lies, for people: an address in linear memory.
    pub fn place(&self, offset: usize) -> String {
        match self.address {
            Some(address) => format!("address {:#x}", address + offset as u64),
            None => format!("byte {offset:#x} of a passive data segment"),
        }
    }
}

/// Every offset of `needle` in `bytes`, without overlaps.
pub(crate) fn find_all<'a>(bytes: &'a [u8], needle: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + find(bytes.get(from..)?, needle)?;
        from = at + needle.len().max(1);
        Some(at)
    })
}

/// The first offset of `needle` in `bytes`.
pub(crate) fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let (&first, rest) = needle.split_first()?;
    let mut from = 0;
    loop {
        let at = from + bytes.get(from..)?.iter().position(|&byte| byte == first)?;
        if bytes[at + 1..].starts_with(rest) {
            return Some(at);
        }
        from = at + 1;
    }
}
