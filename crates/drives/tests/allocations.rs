//! Models answer requests without asking the system for memory.

#![expect(
    clippy::expect_used,
    reason = "a test that cannot make its drive has failed"
)]

use stackrace_drives::{CARDS, Card, Drive, Operation, Request, scattered};

/// Submits reads from `first` on, one at a time, each with its own number.
fn read(drive: &mut dyn Drive, now: &mut u64, numbers: std::ops::Range<u64>) {
    for id in numbers {
        // Ten anywhere, then ten that continue each other.
        let run = if id / 10 % 2 == 0 { id } else { id / 10 };
        let place = scattered(run) % (drive.sectors() / 8 - 10);
        let place = if run == id { place } else { place + id % 10 };
        let request = Request {
            id,
            operation: Operation::Read,
            first: place * 8,
            sectors: 8,
        };
        drive.submit(request, *now);
        while drive.complete(*now).is_none() {
            *now = drive.next_event().expect("the read completes");
        }
    }
}

#[test]
fn reads_allocate_nothing() {
    for text in CARDS {
        let card = Card::parse(text).expect("a card");
        let mut drive = card.drive(0, 4 << 30).expect("a drive");
        let mut now = 0;
        // The first fill what is allocated once.
        read(&mut *drive, &mut now, 0..1000);
        let counted = allocation_counter::measure(|| read(&mut *drive, &mut now, 1000..3000));
        assert_eq!(counted.count_total, 0, "{}", card.model());
    }
}
