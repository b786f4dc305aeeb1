//! Bytes as the reference describes them, sent and understood.

use super::*;
use proptest::prelude::*;

fn at(directory: u32, name: &str) -> CatalogPath<'_> {
    CatalogPath { directory, name }
}

/// The bytes that a server sends about a file or directory, as the reference describes it.
fn sent(about: &FileParameters, named: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let since = i32::try_from(about.modified - EPOCH).unwrap();
    bytes.extend(since.to_be_bytes());
    bytes.extend(about.id.to_be_bytes());
    if !about.is_directory {
        bytes.extend(about.length.to_be_bytes());
    }
    let offset = bytes.len() + 2 + 4 + 16;
    if named {
        bytes.extend(u16::try_from(offset).unwrap().to_be_bytes());
        bytes.extend([0; 4]);
    }
    for number in [about.unix.uid, about.unix.gid, about.unix.mode, 7] {
        bytes.extend(number.to_be_bytes());
    }
    if named {
        bytes.extend(UTF8.to_be_bytes());
        let name = swapped(&about.name);
        bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        bytes.extend(name.as_bytes());
    }
    bytes
}

/// The bytes that a server sends about the entries of a directory.
fn sent_list(entries: &[FileParameters]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let count = u16::try_from(entries.len()).unwrap();
    for number in [OF_FILE | NAME, OF_DIRECTORY | NAME, count] {
        bytes.extend(number.to_be_bytes());
    }
    for entry in entries {
        let mut about = sent(entry, true);
        if about.len() % 2 == 1 {
            about.push(0);
        }
        bytes.extend(u16::try_from(about.len() + 4).unwrap().to_be_bytes());
        bytes.extend([if entry.is_directory { 0x80 } else { 0 }, 0]);
        bytes.extend(about);
    }
    bytes
}

fn anything() -> impl Strategy<Value = FileParameters> {
    let unix = (any::<u32>(), any::<u32>(), any::<u32>());
    let about = (any::<u32>(), any::<bool>(), any::<i32>(), any::<u64>());
    (about, unix, "[a-zäß: .]{3,40}x").prop_map(
        |((id, is_directory, modified, length), (uid, gid, mode), name)| FileParameters {
            id,
            is_directory,
            modified: i64::from(modified) + EPOCH,
            length: if is_directory { 0 } else { length },
            unix: Unix { uid, gid, mode },
            name,
        },
    )
}

proptest! {
    #[test]
    fn what_a_server_lists_is_understood(entries in proptest::collection::vec(anything(), 0..9)) {
        prop_assert_eq!(listed(&sent_list(&entries)), Ok(entries));
    }

    #[test]
    fn a_list_that_ends_too_soon_is_refused(entry in anything(), kept in 0.0..1.0) {
        let bytes = sent_list(&[entry]);
        let kept = (bytes.len() as f64 * kept) as usize;
        // The last byte may be there for an even length alone.
        prop_assume!(kept + 1 < bytes.len());
        prop_assert!(listed(&bytes[..kept]).is_err());
    }

    #[test]
    fn any_bytes_are_understood_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }

    #[test]
    fn a_name_takes_its_length(name in "[a-z/:é]{0,60}", directory: u32) {
        let request = catalog::delete(3, at(directory, &name));
        let bytes = request.bytes();
        prop_assert_eq!(bytes.len(), 8 + 7 + name.len());
        prop_assert_eq!(&bytes[..4], [8, 0, 0, 3]);
        prop_assert_eq!(&bytes[4..8], directory.to_be_bytes());
        let sent = std::str::from_utf8(&bytes[15..]).unwrap();
        prop_assert_eq!(swapped(sent), name);
    }
}

#[test]
fn a_guest_logs_in() {
    let request = session::login();
    assert_eq!(request.bytes(), b"\x12\x06AFP3.4\x0fNo User Authent");
}

#[test]
fn a_colon_here_is_a_slash_there() {
    let request = catalog::create_file(1, at(ROOT, "a:b"));
    let expected = b"\x07\0\0\x01\0\0\0\x02\x03\x08\0\x01\x03\0\x03a/b";
    assert_eq!(request.bytes(), expected);
}

#[test]
fn what_is_set_begins_at_an_even_place() {
    let change = ParameterChange {
        modified: Some(EPOCH + 1),
        ..ParameterChange::default()
    };
    for name in ["ab", "abc"] {
        let request = catalog::set(1, at(ROOT, name), change);
        let bytes = request.bytes();
        assert_eq!(bytes.len() % 2, 0);
        assert_eq!(bytes[bytes.len() - 4..], [0, 0, 0, 1]);
        assert_eq!(bytes[8..10], MODIFIED.to_be_bytes());
    }
}

#[test]
fn a_time_that_does_not_exist_there_becomes_the_nearest() {
    let sent = |seconds| {
        let change = ParameterChange {
            modified: Some(seconds),
            ..ParameterChange::default()
        };
        let request = catalog::set(1, at(ROOT, "f"), change);
        let (_, last) = request.bytes().split_last_chunk::<4>().unwrap();
        i32::from_be_bytes(*last)
    };
    assert_eq!(sent(0), i32::try_from(-EPOCH).unwrap());
    assert_eq!(sent(i64::MAX / 2), i32::MAX);
    assert_eq!(sent(i64::MIN / 2), i32::MIN + 1);
}

#[test]
fn forks_are_addressed_with_64_bits() {
    let request = fork::write(5, 1 << 40, 3);
    let expected = [61, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
    assert_eq!(request.bytes(), expected);
    assert_eq!(written(&[0, 0, 0, 0, 0, 0, 1, 0]), Ok(256));
}

#[test]
fn an_entry_whose_name_leads_elsewhere_is_refused() {
    let named = |name: &str| FileParameters {
        id: 17,
        is_directory: true,
        modified: EPOCH,
        length: 0,
        unix: Unix {
            uid: 0,
            gid: 0,
            mode: 0o40_755,
        },
        name: name.to_string(),
    };
    assert!(listed(&sent_list(&[named("ok")])).is_ok());
    for name in ["..", "a/b", ""] {
        assert!(listed(&sent_list(&[named(name)])).is_err(), "{name}");
    }
}

#[test]
fn a_list_that_was_not_asked_for_is_refused() {
    let bytes = [0, 1, 0, 1, 0, 0];
    assert_eq!(listed(&bytes), Ok(Vec::new()), "nothing in it");
    let bytes = [0, 1, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0];
    assert!(listed(&bytes).is_err());
}
