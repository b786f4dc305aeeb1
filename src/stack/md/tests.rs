//! What the driver and mdadm tell, and real arrays.

use super::{exported, is_layout};
use crate::event::Fact;
use crate::stack::tests::real::{value, whole_life};

/// After the example of MD_ words in mdadm(8), --detail --export.
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
fn layouts_belong_to_levels() {
    assert!(is_layout("10", "f2") && is_layout("5", "left-symmetric"));
    assert!(!is_layout("1", "n2") && !is_layout("10", "left-symmetric"));
}

#[test]
fn arrays() {
    let disks = "loop = { size = \"64 MiB\", count = 4 }";
    for (array, level, degraded) in [
        ("md = { raid = 0 }", "raid0", None),
        ("md = { raid = 1, bitmap = \"none\" }", "raid1", Some("0")),
        ("md = { raid = 1, degraded = true }", "raid1", Some("1")),
        (
            "md = { raid = 5, chunk = \"64 KiB\", assume-clean = false }",
            "raid5",
            Some("0"),
        ),
        ("md = { raid = 6 }", "raid6", Some("0")),
        ("md = { raid = 10, layout = \"f2\" }", "raid10", Some("0")),
    ] {
        whole_life(&[disks, array, "ext4 = {}"], |raised| {
            let facts = &raised.facts()[1].facts;
            assert_eq!(value(facts, "level"), level);
            let found = facts.iter().find(|fact| fact.name == "degraded");
            assert_eq!(found.map(|fact| fact.value.as_str()), degraded);
            assert!(raised.devices()[0].starts_with("md"));
        });
    }
}
