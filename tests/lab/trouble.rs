//! Storage that stops answering, is taken away or is used up under the program, on mapped devices of a guest.

use super::*;

pub(crate) fn storage_that_stops_is_taken_away_or_is_used_up_is_named_and_nothing_is_lost() {
    cache("image");
    let ground = Ground::new();
    let words = ["lab", "shell", "--system", &system()];
    let guest = ["--disk", "2 GiB", "--disk", "1 GiB", "--", "bash", "-c"];
    let script = [include_str!("trouble.sh"), "trouble.sh", "/kit/stackrace"];
    let cases = ["suspended", "taken_away", "quota"];
    let said = ground.stackrace(&[&words[..], &guest, &script, &cases].concat());
    said.ended(0);
    let part = |name: &str| {
        let mut parts = said.out.split("\n== ");
        let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('\n'));
        part.unwrap_or_else(|| panic!("no part {name}: {}{}", said.out, said.err))
    };
    let has = |name: &str, all: &[&str]| {
        let part = part(name);
        for words in all {
            assert!(part.contains(words), "{name}: {words}: {part}");
        }
    };
    has(
        "suspended",
        &[
            "code 130\n",
            "waiting for storage: ",
            "does not return",
            "stopped at once; `stackrace clean` removes what is left",
            "undone: remove /mnt/a/.stackrace-load-",
        ],
    );
    assert!(!part("suspended").contains("left: "), "{}", said.out);
    // What is on a device that is gone cannot be removed: it is named, and the other configuration goes on.
    has(
        "taken_away",
        &[
            "code 5\n",
            "No verdict: /mnt/a failed in round ",
            "Input/output error",
            "next     mend what made /mnt/a fail, then:",
            "not undone: remove /mnt/a/.stackrace-",
            "code 4\n",
        ],
    );
    has(
        "quota",
        &["/mnt/b/few has 8 MiB free; this needs 64 MiB", "code 3\n"],
    );
    assert_eq!(part("quota").matches("Disk quota exceeded").count(), 2);
    assert!(!part("quota").contains("left: "), "{}", said.out);
}
