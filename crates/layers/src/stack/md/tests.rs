//! What the driver and mdadm tell, and real arrays.

use super::{RaidLevel, copies, exported, is_layout, members_at_work};
use stackrace_base::event::Fact;

/// Output after the example of MD_ words in mdadm(8), --detail --export.
#[test]
fn what_mdadm_exports_becomes_facts() {
    let facts = exported(concat!(
        "MD_LEVEL=raid1\nMD_DEVICES=2\nMD_METADATA=1.2\n",
        "MD_UUID=01234567:89abcdef:80000000:00000001\n",
        "MD_DEVICE_dev_loop0_ROLE=0\nMD_DEVICE_dev_loop0_DEV=/dev/loop0\n",
    ));
    assert_eq!(facts.len(), 4);
    assert_eq!(facts[0], Fact::new("MD_LEVEL", "raid1"));
}

#[test]
fn members_that_failed_are_counted() {
    // In the layout of mdadm 4.2.
    let detail = |active| {
        format!(
            "/dev/md127:\n           Version : 1.2\n      Raid Devices : 2\n             State : clean\n    \
             Active Devices : {active}\n   Working Devices : {active}\n"
        )
    };
    assert_eq!(members_at_work(&detail(2)), "at work on 2 members");
    assert_eq!(members_at_work(&detail(1)), "at work on 1 member");
}

#[test]
fn layouts_belong_to_levels() {
    assert!(is_layout(RaidLevel::Ten, "f2") && is_layout(RaidLevel::Five, "left-symmetric"));
    assert!(!is_layout(RaidLevel::One, "n2") && !is_layout(RaidLevel::Ten, "left-symmetric"));
}

#[test]
fn a_layout_of_raid_10_says_how_many_copies_there_are() {
    assert_eq!([None, Some("n2"), Some("f3")].map(copies), [2, 2, 3]);
}
