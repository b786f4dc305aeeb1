//! What LVM reports, and real volumes.

use super::{regrouped, reported};

/// Output in JSON after lvmreport(7); columns as asked for here.
#[test]
fn what_lvs_reports_is_understood() {
    let text = concat!(
        "  {\n      \"report\": [\n          {\n              \"lv\": [\n",
        "{\"lv_name\":\"data\", \"segtype\":\"striped\", \"stripes\":\"2\", \"stripe_size\":\"65536\", \"origin\":\"\"},\n",
        "{\"lv_name\":\"[pool_tdata]\", \"segtype\":\"linear\", \"stripes\":\"1\"}\n",
        "              ]\n          }\n      ]\n  }\n",
    );
    let volumes = reported(text).unwrap();
    assert_eq!(volumes[0].get("stripe_size"), "65536");
    assert_eq!(volumes[1].get("lv_name"), "pool_tdata");
    let fact = volumes[0].fact();
    assert_eq!(fact.name, "volume data");
    assert!(fact.value.contains("stripes 2") && !fact.value.contains("origin"));
    assert!(reported("{}").is_none());
}

#[test]
fn a_uuid_is_grouped_as_lvm_wants_it() {
    assert_eq!(
        regrouped("01234567-89ab-cdef-8000-000000000001"),
        "012345-6789-abcd-ef80-0000-0000-000001"
    );
    assert_eq!(regrouped("{id}-8000-1"), "{id}-8000-1");
}
