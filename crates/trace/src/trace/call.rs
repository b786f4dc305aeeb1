//! The calls that are recorded: what each is named in a trace, and how the kernel side reads it.

use super::raw::RawEvent;

/// Class of an operation, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Reading data.
    Read,
    /// Writing data.
    Write,
    /// Making written data durable.
    Sync,
    /// Opening and closing files.
    Open,
    /// Asking for names, attributes and lists.
    Look,
    /// Making, renaming and removing names, and setting attributes.
    Change,
    /// Setting sizes, and allocating.
    Space,
    /// Mapping files into memory.
    Map,
    /// Calls to storage that are seen, and cannot be replayed: io_uring, aio, msync, copies between files.
    Uncovered,
    /// Everything else that a thread waited in.
    Wait,
    /// What orders threads: forks, wakes, ends, files that were open before.
    Order,
}

impl Class {
    /// All classes of calls to storage, as tables have them.
    pub const STORAGE: [Self; 9] = [
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::Open,
        Self::Look,
        Self::Change,
        Self::Space,
        Self::Map,
        Self::Uncovered,
    ];

    /// The class in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Open => "open, close",
            Self::Look => "look",
            Self::Change => "change names",
            Self::Space => "set sizes",
            Self::Map => "map",
            Self::Uncovered => "not covered",
            Self::Wait => "other waits",
            Self::Order => "order",
        }
    }
}

macro_rules! codes {
    ($($code:literal $name:ident $word:literal $class:ident,)*) => {
        /// An operation of a trace. The numbers are those of the file, on every architecture.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Code {
            $(#[doc = $word] $name = $code,)*
        }

        impl Code {
            /// Every operation.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The class that it is counted in.
            pub fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)* }
            }
        }
    };
}

codes! {
    1 Read "read" Read,
    2 ReadAt "pread" Read,
    3 Write "write" Write,
    4 WriteAt "pwrite" Write,
    5 Fsync "fsync" Sync,
    6 Fdatasync "fdatasync" Sync,
    7 SyncRange "sync_file_range" Sync,
    8 SyncFs "syncfs" Sync,
    9 SyncMap "msync" Uncovered,
    10 Open "open" Open,
    11 Close "close" Open,
    12 Seek "lseek" Look,
    13 Stat "stat" Look,
    14 Access "access" Look,
    15 ReadLink "readlink" Look,
    16 List "getdents" Look,
    17 GetExtended "getxattr" Look,
    18 StatFs "statfs" Look,
    19 Lock "fcntl" Look,
    20 Advise "fadvise" Look,
    21 MakeDir "mkdir" Change,
    22 RemoveDir "rmdir" Change,
    23 Unlink "unlink" Change,
    24 Rename "rename" Change,
    25 Link "link" Change,
    26 SymLink "symlink" Change,
    27 Mode "chmod" Change,
    28 Owner "chown" Change,
    29 Times "utimensat" Change,
    30 SetExtended "setxattr" Change,
    31 ChangeDir "chdir" Look,
    32 Truncate "truncate" Space,
    33 Allocate "fallocate" Space,
    34 Map "mmap" Map,
    35 Ring "io_uring_enter" Uncovered,
    36 Submit "io_submit" Uncovered,
    37 Copy "copy_file_range, sendfile, splice" Uncovered,
    38 LockWhole "flock" Look,
    60 Other "other call" Wait,
    61 OtherFile "call on another file" Wait,
    70 Held "open before" Order,
    71 Wake "wake" Order,
    72 Fork "fork" Order,
    73 Exit "exit" Order,
    74 Begin "begin" Order,
}

impl Code {
    /// The operation of a number in a file.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|code| **code as u8 == number)
            .copied()
    }

    /// A call whose time is spent on the recorded storage.
    pub fn is_storage(self) -> bool {
        Class::STORAGE.contains(&self.class())
    }
}

/// Numbers of calls that the kernel side knows; the last one stands for all above.
pub const CALL_NUMBERS: usize = 512;

/// How the kernel side reads a call: arguments are counted from 1, and 0 is none. `struct role` of `recorder.c`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Role {
    /// Which argument is a file's name.
    pub name: u8,
    /// The second name.
    pub second: u8,
    /// A directory's descriptor stands before the name.
    pub at: bool,
    /// Which argument is an open file.
    pub descriptor: u8,
    /// The result is a descriptor.
    pub opens: bool,
    /// The descriptor is gone afterwards.
    pub closes: bool,
    /// It is sent whatever its file is.
    pub always: bool,
}

impl Role {
    /// As the kernel side has it.
    pub fn bytes(self) -> [u8; 7] {
        [
            self.name,
            self.second,
            self.at.into(),
            self.descriptor,
            self.opens.into(),
            self.closes.into(),
            self.always.into(),
        ]
    }
}

/// A system call: its operation, how it is read, and which arguments are kept. Arguments are counted from 1, and 0 is
/// none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) code: Code,
    pub(super) role: Role,
    pub(super) offset: u8,
    pub(super) length: u8,
    pub(super) flags: u8,
    /// Flags that its name says.
    pub(super) implied: u64,
    /// Numbers on x86-64 and arm64; `NONE` where there is no such call.
    numbers: [u16; 2],
}

impl Call {
    /// What it does: a read or write at an offset of -1 is one at the position (preadv2(2)).
    pub(super) fn at_position(&self, event: &RawEvent<'_>) -> Code {
        let at_position = self.flags > 0 && event.argument(self.offset) == u64::MAX;
        match self.code {
            Code::ReadAt if at_position => Code::Read,
            Code::WriteAt if at_position => Code::Write,
            code => code,
        }
    }

    /// Its flags are in memory, which is not read (`openat2`).
    pub(super) fn hides_flags(&self) -> bool {
        self.code == Code::Open && self.flags == 0 && self.implied == 0
    }
}

/// Flag of calls on names that a link is not followed (`AT_SYMLINK_NOFOLLOW`, on every architecture of Linux).
pub const NO_FOLLOW: u64 = 0x100;
// No architecture has so many calls.
const NONE: u16 = u16::MAX;
const NO_ROLE: Role = Role {
    name: 0,
    second: 0,
    at: false,
    descriptor: 0,
    opens: false,
    closes: false,
    always: false,
};

/// A call on a descriptor, which is the argument `fd`.
const fn on(code: Code, fd: u8, kept: [u8; 3], numbers: [u16; 2]) -> Call {
    let role = Role {
        descriptor: fd,
        ..NO_ROLE
    };
    call(code, role, kept, numbers)
}

/// A call on a name; `at`: a directory's descriptor stands before it.
const fn named(code: Code, name: u8, at: bool, kept: [u8; 3], numbers: [u16; 2]) -> Call {
    let opens = matches!(code, Code::Open);
    let role = Role {
        name,
        at,
        opens,
        ..NO_ROLE
    };
    call(code, role, kept, numbers)
}

/// A call on a name that is not followed where it is a link.
const fn still(code: Code, name: u8, kept: [u8; 3], numbers: [u16; 2]) -> Call {
    Call {
        implied: NO_FOLLOW,
        ..named(code, name, false, kept, numbers)
    }
}

/// `creat`, whose flags are in its name: for writing, made, emptied (open(2), on every architecture that has it).
const fn creat(numbers: [u16; 2]) -> Call {
    Call {
        implied: 0o1101,
        ..named(Code::Open, 1, false, [0, 2, 0], numbers)
    }
}

/// A call on two names.
const fn two(code: Code, names: [u8; 2], at: bool, flags: u8, numbers: [u16; 2]) -> Call {
    let role = Role {
        name: names[0],
        second: names[1],
        at,
        ..NO_ROLE
    };
    call(code, role, [0, 0, flags], numbers)
}

/// A call that is always sent.
const fn always(code: Code, numbers: [u16; 2]) -> Call {
    let role = Role {
        always: true,
        ..NO_ROLE
    };
    call(code, role, [0, 0, 0], numbers)
}

const fn call(code: Code, role: Role, kept: [u8; 3], numbers: [u16; 2]) -> Call {
    let [offset, length, flags] = kept;
    Call {
        code,
        role,
        offset,
        length,
        flags,
        implied: 0,
        numbers,
    }
}

const CLOSES: Role = Role {
    closes: true,
    ..NO_ROLE
};

/// Every call that is recorded; numbers from the kernel's tables (`arch/x86/entry/syscalls/syscall_64.tbl`,
/// `include/uapi/asm-generic/unistd.h`). What is kept: offset, length, flags.
const CALLS: &[Call] = &[
    on(Code::Read, 1, [0, 3, 0], [0, 63]),
    on(Code::Read, 1, [0, 0, 0], [19, 65]),
    on(Code::ReadAt, 1, [4, 3, 0], [17, 67]),
    on(Code::ReadAt, 1, [4, 0, 0], [295, 69]),
    on(Code::ReadAt, 1, [4, 0, 6], [327, 286]),
    on(Code::Write, 1, [0, 3, 0], [1, 64]),
    on(Code::Write, 1, [0, 0, 0], [20, 66]),
    on(Code::WriteAt, 1, [4, 3, 0], [18, 68]),
    on(Code::WriteAt, 1, [4, 0, 0], [296, 70]),
    on(Code::WriteAt, 1, [4, 0, 6], [328, 287]),
    on(Code::Fsync, 1, [0, 0, 0], [74, 82]),
    on(Code::Fdatasync, 1, [0, 0, 0], [75, 83]),
    on(Code::SyncRange, 1, [2, 3, 4], [277, 84]),
    on(Code::SyncFs, 1, [0, 0, 0], [306, 267]),
    always(Code::SyncFs, [162, 81]),
    always(Code::SyncMap, [26, 227]),
    named(Code::Open, 1, false, [0, 3, 2], [2, NONE]),
    creat([85, NONE]),
    named(Code::Open, 2, true, [0, 4, 3], [257, 56]),
    // openat2 has its flags in memory, which is not read.
    named(Code::Open, 2, true, [0, 0, 0], [437, 437]),
    // The kernel side looks the file up before the call: afterwards the descriptor may be that of another one.
    call(Code::Close, CLOSES, [0, 0, 0], [3, 57]),
    on(Code::Seek, 1, [2, 0, 3], [8, 62]),
    named(Code::Stat, 1, false, [0, 0, 0], [4, NONE]),
    still(Code::Stat, 1, [0, 0, 0], [6, NONE]),
    on(Code::Stat, 1, [0, 0, 0], [5, 80]),
    named(Code::Stat, 2, true, [0, 0, 4], [262, 79]),
    named(Code::Stat, 2, true, [0, 0, 3], [332, 291]),
    named(Code::Access, 1, false, [0, 0, 2], [21, NONE]),
    named(Code::Access, 2, true, [0, 0, 3], [269, 48]),
    named(Code::Access, 2, true, [0, 0, 3], [439, 439]),
    named(Code::ReadLink, 1, false, [0, 3, 0], [89, NONE]),
    named(Code::ReadLink, 2, true, [0, 4, 0], [267, 78]),
    on(Code::List, 1, [0, 3, 0], [217, 61]),
    on(Code::List, 1, [0, 3, 0], [78, NONE]),
    named(Code::GetExtended, 1, false, [0, 4, 0], [191, 8]),
    named(Code::GetExtended, 1, false, [0, 4, 0], [192, 9]),
    on(Code::GetExtended, 1, [0, 4, 0], [193, 10]),
    named(Code::StatFs, 1, false, [0, 0, 0], [137, 43]),
    on(Code::StatFs, 1, [0, 0, 0], [138, 44]),
    on(Code::LockWhole, 1, [0, 0, 2], [73, 32]),
    // Which part of the file is locked stands in memory, which is not read.
    on(Code::Lock, 1, [0, 0, 2], [72, 25]),
    on(Code::Advise, 1, [2, 3, 4], [221, 223]),
    on(Code::Advise, 1, [2, 3, 0], [187, 213]),
    named(Code::MakeDir, 1, false, [0, 0, 2], [83, NONE]),
    named(Code::MakeDir, 2, true, [0, 0, 3], [258, 34]),
    named(Code::RemoveDir, 1, false, [0, 0, 0], [84, NONE]),
    named(Code::Unlink, 1, false, [0, 0, 0], [87, NONE]),
    named(Code::Unlink, 2, true, [0, 0, 3], [263, 35]),
    two(Code::Rename, [1, 2], false, 0, [82, NONE]),
    two(Code::Rename, [2, 4], true, 0, [264, 38]),
    two(Code::Rename, [2, 4], true, 5, [316, 276]),
    two(Code::Link, [1, 2], false, 0, [86, NONE]),
    two(Code::Link, [2, 4], true, 5, [265, 37]),
    two(Code::SymLink, [2, 1], false, 0, [88, NONE]),
    two(Code::SymLink, [3, 1], true, 0, [266, 36]),
    named(Code::Mode, 1, false, [0, 0, 2], [90, NONE]),
    on(Code::Mode, 1, [0, 0, 2], [91, 52]),
    named(Code::Mode, 2, true, [0, 0, 3], [268, 53]),
    named(Code::Owner, 1, false, [0, 0, 0], [92, NONE]),
    on(Code::Owner, 1, [0, 0, 0], [93, 55]),
    still(Code::Owner, 1, [0, 0, 0], [94, NONE]),
    named(Code::Owner, 2, true, [0, 0, 5], [260, 54]),
    named(Code::Times, 2, true, [0, 0, 4], [280, 88]),
    named(Code::SetExtended, 1, false, [0, 4, 5], [188, 5]),
    named(Code::SetExtended, 1, false, [0, 4, 5], [189, 6]),
    on(Code::SetExtended, 1, [0, 4, 5], [190, 7]),
    named(Code::ChangeDir, 1, false, [0, 0, 0], [80, 49]),
    on(Code::ChangeDir, 1, [0, 0, 0], [81, 50]),
    named(Code::Truncate, 1, false, [0, 2, 0], [76, 45]),
    on(Code::Truncate, 1, [0, 2, 0], [77, 46]),
    on(Code::Allocate, 1, [3, 4, 2], [285, 47]),
    // Pages that are touched later are no calls: they show as waits of the gap.
    on(Code::Map, 5, [6, 2, 3], [9, 222]),
    // Requests of rings name no descriptor here: only the time in the call is known.
    always(Code::Ring, [426, 426]),
    always(Code::Submit, [209, 2]),
    // The second file is not known, so these cannot be repeated.
    on(Code::Copy, 1, [0, 5, 0], [326, 285]),
    on(Code::Copy, 2, [0, 4, 0], [40, 71]),
    on(Code::Copy, 1, [0, 5, 0], [275, 76]),
];

/// Which column of the numbers is that of this machine.
pub const ARCHITECTURE: Option<usize> = if cfg!(target_arch = "x86_64") {
    Some(0)
} else if cfg!(target_arch = "aarch64") {
    Some(1)
} else {
    None
};

/// The role of every call on an architecture ([`ARCHITECTURE`]), with its number.
pub fn roles(architecture: usize) -> impl Iterator<Item = (u16, Role)> {
    let numbers = CALLS
        .iter()
        .map(move |call| (call.numbers[architecture], call.role));
    numbers.filter(|(number, _)| *number != NONE)
}

/// The calls of an architecture by their numbers.
pub(super) fn by_number(architecture: usize) -> Vec<Option<&'static Call>> {
    let mut found = vec![None; CALL_NUMBERS];
    for call in CALLS {
        let number = usize::from(call.numbers[architecture]);
        if number < CALL_NUMBERS {
            found[number] = Some(call);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_number_of_a_call_is_there_twice() {
        for architecture in [0, 1] {
            let numbers: Vec<u16> = roles(architecture).map(|(number, _)| number).collect();
            let unique: BTreeSet<u16> = numbers.iter().copied().collect();
            assert_eq!(unique.len(), numbers.len());
            assert!(
                numbers
                    .iter()
                    .all(|number| usize::from(*number) < CALL_NUMBERS - 1)
            );
        }
    }

    #[test]
    fn every_operation_is_found_by_its_number() {
        for code in Code::ALL {
            assert_eq!(Code::of(*code as u8), Some(*code));
        }
        assert_eq!(Code::of(0), None);
        assert_eq!(Code::of(255), None);
    }
}
