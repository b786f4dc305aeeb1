//! Events as the kernel side sends them: `struct event` of `crates/capture/bpf/recorder.c`.

/// Bytes of an event without its names.
const HEAD: usize = 168;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RawKind {
    Call,
    Wake,
    Fork,
    Exit,
}

/// One event. Times are those of the kernel's monotonic clock, ns.
#[derive(Debug, Clone)]
pub struct RawEvent<'a> {
    pub(super) kind: RawKind,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Ready to run and off the processor since the thread is known.
    pub(super) queued: u64,
    /// Asleep since the thread is known.
    pub(super) blocked: u64,
    /// The same in this call alone.
    pub(super) queued_inside: u64,
    pub(super) blocked_inside: u64,
    pub(super) result: i64,
    pub(super) arguments: [u64; 6],
    /// Address of the open file, which names it; 0: none.
    pub(super) file: u64,
    pub(super) inode: u64,
    pub(super) position: u64,
    /// Inode of the directory in which a relative name begins.
    pub(super) base: u64,
    pub(super) device: u32,
    pub(super) base_device: u32,
    pub(super) flags: u32,
    pub(super) thread: u32,
    pub(super) process: u32,
    pub(super) mode: u16,
    pub(super) call: u16,
    /// Names without the byte that ends them; empty: none, or too long.
    pub(super) name: Option<&'a [u8]>,
    pub(super) second: Option<&'a [u8]>,
}

impl<'a> RawEvent<'a> {
    /// Reads an event; none: it is not as the kernel side writes it.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let head = bytes.get(..HEAD)?;
        let long = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&head[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        let word = |at: usize| (long(at - at % 8) >> (8 * (at % 8))) as u32;
        // Offsets are those of the C compiler: all fields lie on multiples of their size.
        let half = |at: usize| word(at - at % 4) >> (8 * (at % 4)) & 0xffff;
        let (length, second_length) = (half(160) as usize, half(162) as usize);
        let names = bytes.get(HEAD..HEAD + length + second_length)?;
        let (name, second) = names.split_at(length);
        Some(Self {
            kind: match word(164) {
                0 => RawKind::Call,
                1 => RawKind::Wake,
                2 => RawKind::Fork,
                3 => RawKind::Exit,
                _ => return None,
            },
            start: long(0),
            end: long(8),
            queued: long(16),
            blocked: long(24),
            queued_inside: long(32),
            blocked_inside: long(40),
            result: long(48) as i64,
            arguments: std::array::from_fn(|at| long(56 + 8 * at)),
            file: long(104),
            inode: long(112),
            position: long(120),
            base: long(128),
            device: word(136),
            base_device: word(140),
            flags: word(144),
            thread: word(148),
            process: word(152),
            mode: half(156) as u16,
            call: half(158) as u16,
            name: name.split_last().map(|(_, name)| name),
            second: second.split_last().map(|(_, name)| name),
        })
    }

    /// An argument, counted from 1; 0 for none.
    pub(super) fn argument(&self, at: u8) -> u64 {
        let from_zero = usize::from(at).checked_sub(1);
        let found = from_zero.and_then(|at| self.arguments.get(at));
        found.copied().unwrap_or_default()
    }
}
