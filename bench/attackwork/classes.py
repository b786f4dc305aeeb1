"""What is attacked, class by class: a sentence for each promise, and the tests that attack it.

A test is named by its target (`lib`: the unit tests of all packages, a file of tests/, `-p PACKAGE`) and the end of its name, with `*`.
"""

OUTPUTS = [
    ("a device, a FIFO and a file of others are never replaced by a file", "outputs", "*"),
    ("the same, call by call", "lib", "cli::output::tests::*"),
    ("a path that cannot be written is refused", "export", "what_cannot_be_written_is_refused"),
]
STORE_OF_OTHERS = [
    ("a store, run or file of others is refused, each component", "store", "a_store_that_is_not_roots_own_is_refused"),
    ("so is a directory above it", "store", "a_directory_above_the_store_that_others_write_is_refused"),
]
LINKS = [
    ("no links, regular files only, a FIFO does not block", "store", "links_and_fifos_in_the_place_of_files_are_refused"),
    ("the same, call by call", "lib", "owned::tests::*"),
]
UNDO = [
    ("a journal gives a command", "programs", "a_journal_gives_no_command"),
    ("a journal asks for what its run did not create", "store", "a_journal_that_asks_for_what*"),
    ("one hostile journal beside honest ones", "store", "one_hostile_journal_does_not*"),
    ("names and places of an undo", "lib", "journal::proof::tests::*"),
    ("marks of processes and signatures, files that are written back", "lib", "journal::check::tests::*"),
    ("undos of layers", "lib", "journal::layer::tests::*"),
    ("random hostile journals on an imagined machine", "lib", "testing::system::tests::a_hostile_journal_touches_nothing_of_others"),
    ("what can be touched there", "lib", "testing::system::tests::there_is_something_to_be_touched"),
]
WORDS = [
    ("words of mkfs, mount and shares that reach beyond the stack", "lib", "words_that_reach_beyond_the_stack_are_refused"),
    ("words that are on no list", "lib", "foundation::words::tests::*"),
    ("through the whole program, before anything is touched", "refusals", "words_of_mkfs_that_are_not_on_the_list_are_refused"),
    ("a relative path leads a tool that formats nowhere", "machine", "a_relative_path_leads_a_formatting_tool_nowhere"),
]
IN_USE = [
    ("mounts, loop devices, processes, exclusive right, swap", "machine", "used::a mounted*"),
    ("a mount that only other processes see", "machine", "used::a file system mounted*"),
    ("loop devices on it", "machine", "used::a loop device*"),
    ("processes that have it open", "machine", "used::a process*"),
    ("the kernel's exclusive right", "machine", "used::a holder of the exclusive right"),
    ("swap space", "machine", "used::swap space in use"),
    ("mapped devices", "machine", "used::a mapped device"),
    ("what the kernel serves over a network", "lib", "a_disk_that_the_kernel_serves_is_in_use"),
    ("with permission to wipe, too", "machine", "what_is_in_use_is_refused_with_permission_too"),
    ("what others do between check and format", "machine", "what_others_do_between_check_and_format"),
    ("the same in a whole stack", "machine", "a_disk_that_changes_before_its_stack_stands"),
    ("while it is wiped", "machine", "a_disk_that_is_opened_while_it_is_wiped"),
    ("when it is given back", "machine", "what_is_in_use_is_not_given_back"),
]
REPOINTED = [
    ("an id re-pointed after the check", "machine", "an_id_that_leads_elsewhere_after_the_check"),
    ("an id pointed to and fro during 40 set-ups", "machine", "an_id_that_is_pointed_to_and_fro_during_40_set_ups"),
    ("the path of the kernel leads to another disk", "machine", "a_path_that_leads_to_another_disk_meanwhile"),
    ("the disk is held until tear-down", "machine", "a_disk_is_held_until_its_stack_is_torn_down"),
    ("another size or model than the study says", "machine", "another_disk_than_the_one_named_is_refused"),
]
CONTENT = [
    ("signatures, second superblocks, data without any, shifted file systems", "machine", "carried::*"),
    ("what each tool recognises", "machine", "guarded::a_*of_an_array"),
    ("LVM", "machine", "guarded::a_physical_volume*"),
    ("LUKS", "machine", "guarded::an_encrypted_device"),
    ("partition tables", "machine", "guarded::partition_tables"),
    ("where samples lie, what cannot be read", "lib", "host::device::tests::*"),
]
ENDLESS = [
    ("endless files, FIFOs, prompts and machines", "endless", "an_endless*"),
    ("a machine's endless line", "endless", "a_machine_that_prints_a_line_without_end_is_given_up"),
    ("a machine's endless replies", "lib", "a_machine_that_sends_replies_without_end_is_given_up"),
    ("bounded reads", "lib", "bounded::tests::*"),
    ("a command's endless output", "lib", "output_beyond_the_limit_is_counted_and_the_command_still_ends"),
]
SERVER = [
    ("bodies before the token", "serve", "a_stranger_is_refused_before_a_form_is_read"),
    ("forms of many bytes and values", "serve", "a_form_has_few_bytes_and_few_values"),
    ("half-open forms", "serve", "forms_that_never_end_take_little_memory"),
    ("requests and event streams that never end", "serve", "pages_load_while_*"),
    ("event streams that were closed", "serve", "who_closes_an_event_stream_can_always_open_the_next"),
    ("threads", "serve", "a_thread_that_cannot_start_is_an_answer_*"),
    ("strangers", "serve", "strangers_are_kept_out"),
    ("a path out of the store", "serve", "what_is_not_there*"),
    ("limits for each client", "lib", "web::limits::tests::*"),
    ("slow requests and slow readers", "lib", "web::arriving::tests::*"),
    ("rebinding, pages of others, tokens", "lib", "web::guard::tests::*"),
    ("requests that are none", "lib", "web::http::tests::*"),
]
NAMES = [
    ("terminals", "names", "no_terminal_obeys_a_name"),
    ("spreadsheets", "names", "no_spreadsheet_computes_a_name"),
    ("pages", "serve", "what_is_written_into_a_name_is_text_on_every_page"),
    ("a text, letter by letter", "lib", "foreign_text_commands_no_terminal_and_passes_for_no_colour"),
    ("a cell, letter by letter", "lib", "a_text_is_no_formula_and_a_number_stays_one"),
]
PAUSES = [
    ("a program that is stopped in a trial", "pauses", "*"),
    ("a worker over SSH that is stopped", "remote", "a_trial_whose_worker_was_stopped*"),
    ("stopped, suspended, starved, a clock that was set", "lib", "audit::pause::tests::*"),
]
MENDED = [
    ("a full directory is measured again once it has room", "run", "a_directory_that_was_full_is_measured_again*"),
    ("a disk that failed in a trial, too", "run", "a_disk_that_fails_in_a_trial*"),
    ("the rule, round by round", "lib", "a_full_or_broken_disk_keeps_a_configuration_out*"),
]

# Fourteen attacks that once succeeded, and accidents by their cause.
ACCIDENTS = {
    "F1": ("storage that is unmounted, mounted over, made read-only or replaced under a run", [
        ("its identity is fixed at the beginning and compared before and after each trial", "run", "storage_that_is_*"),
        ("its identity is fixed at the beginning and compared before and after each trial", "run", "a_directory_that_*_replaces_is_out"),
    ]),
    "F2": ("store, loop directory or compared directory renamed, or hidden by a mount", [
        ("an undo is done only when the thing is gone, found by its numbers", "run", "a_store_that_was_moved_has_all_results*"),
        ("an undo is done only when the thing is gone, found by its numbers", "run", "disks_that_a_mount_hides_are_not_called_gone"),
        ("an undo is done only when the thing is gone, found by its numbers", "run", "disks_whose_directory_was_moved_are_not_called_gone"),
    ]),
    "F3": ("a link of root's below a directory of ours", [
        ("below what was made no link is followed", "lib", "below_what_was_made_no_link_is_followed"),
    ]),
    "F4": ("a forged journal that takes a foreign UUID's digits for its mark", [
        ("our UUIDs have digits that no tool draws", "lib", "journal::proof::tests::*"),
    ]),
    "F5": ("a false PostgreSQL server", [
        ("limits on what it may say", "lib", "team::tests::*"),
    ]),
    "F6": ("a login that is silent, echoes or never ends", [
        ("deadlines, and Ctrl-C ends the wait", "lib", "agent::ssh::tests::*"),
    ]),
    "F7": ("a cause that was mended", [
        ("causes are values; the round is measured again", "lib", "a_round_whose_failure_can_be_mended_is_measured_again_after_a_resume"),
        ("causes are values; the round is measured again", "lib", "the_cause_of_a_trouble_is_the_number_that_the_system_gave"),
        ("causes are values; the round is measured again", "lib", "a_disk_that_was_full_when_data_were_laid_out_can_be_mended"),
    ]),
    "F8": ("a log of a newer format", [
        ("it is read and never added to", "lib", "a_log_of_a_newer_format_is_read_and_never_added_to"),
    ]),
    "F9": ("a trial's line that is taken out of a log", [
        ("each round says how many there were", "lib", "a_trial_that_was_taken_out_of_a_log_is_noticed_and_said"),
    ]),
    "F10": ("control characters, reversed and invisible letters in names", [
        ("one escape where it is printed", "terminal", "foreign_text_commands_no_terminal"),
        ("one escape where it is printed", "names", "no_terminal_obeys_a_name"),
    ]),
    "F11": ("a token in the list of processes", [
        ("the option with a text is refused", "serve", "a_token_is_never_a_word_of_the_command"),
    ]),
    "F12": ("thirty runs started from the page at once", [
        ("one at a time", "serve", "of_many_starts_at_once_one_runs_and_the_others_are_told_why"),
    ]),
    "F13": ("images of the lab that another user owns", [
        ("owner and mode are checked on the whole way", "lib", "root_uses_no_image_that_another_user_owns_or_can_write"),
    ]),
    "F14": ("`Content-Length: +3`; limits on open files, on the size of files, on processes", [
        ("refused before anything is touched", "lib", "what_is_no_request_is_refused"),
        ("refused before anything is touched", "endless", "a_limit_that_is_too_low_is_refused_before_anything_is_made"),
    ]),
    "A": ("storage that never answers, or interrupts each call", [
        ("Ctrl-C names the call; the second one frees the terminal; retries have an end", "run", "storage_that_hangs_is_named*"),
        ("Ctrl-C names the call; the second one frees who waits; retries have an end", "run", "the_second_ctrl_c_*"),
        ("Ctrl-C names the call; the second one frees the terminal; retries have an end", "-p stackrace-system", "retry::tests::*"),
        ("a command that does not end is named, with the command that ends it", "run", "a_set_up_that_does_not_end_*"),
        ("a closed terminal stops a run cleanly, or leaves it alone", "run", "a_run_that_leads_its_session_*"),
        ("a closed terminal stops a run cleanly, or leaves it alone", "run", "a_run_whose_terminal_is_gone_*"),
    ]),
    "B": ("a clock that is set while a run goes on", [
        ("monotonic times in each line; an order of runs; lists follow it", "lib", "record::tests::clocks::*"),
        ("monotonic times in each line; an order of runs; lists follow it", "lib", "the_list_begins_with_the_run_that_was_begun_last*"),
    ]),
    "C": ("a power cut between a removal and its line", [
        ("the directory is synced first", "run", "after_a_power_cut_nothing_is_there*"),
    ]),
    "D": ("a daemon with an environment of its own", [
        ("child subreaper; it is ended and named", "lib", "a_daemon_is_ended_and_named_whatever_its_environment"),
    ]),
    "E": ("standard output full, a log cut in mid-run, short writes, a quota", [
        ("a quota that `df` does not show is found out and said", "run", "sizes_are_found_within_a_quota_*"),
        ("every outcome is looked at", "terminal", "a_full_disk_behind_standard_output*"),
        ("every outcome is looked at", "run", "a_log_that_is_cut_while_the_run_goes_on*"),
        ("every outcome is looked at", "-p stackrace-engine", "short_writes_do_not_change_the_content"),
    ]),
    "F": ("replies of workers, clients and guests that do not fit", [
        ("compared with what was asked, in one place", "lib", "tests::lies::*"),
        ("compared with what was asked, in one place", "lib", "lab::console::tests::*"),
        ("requests of a guest to its disk", "lib", "a_guest_that_asks_for_anything_*"),
    ]),
    "G": ("limits of control groups", [
        ("read, on record, in the audit and in the sizes", "lib", "the_narrowest_limit_of_a_group_and_those_above_it_counts"),
        ("read, on record, in the audit and in the sizes", "lib", "limits_of_io_of_both_versions*"),
        ("a program that the kernel ends for want of memory is said to be that", "lib", "a_program_that_ends_badly_while_memory_is_short_*"),
    ]),
}

CLASSES = {
    "1": ("root obeys a store or a journal that another user wrote",
          STORE_OF_OTHERS + LINKS + UNDO),
    "2": ("an output file replaces a device", OUTPUTS),
    "3": ("a command that only lists changes files", [
        ("links, texts and FIFOs in place of journals", "store", "listing_and_cleaning_change_no_file*"),
        ("a torn journal", "store", "listing_leaves_a_torn_journal*"),
        ("a file that is not understood", "lib", "nothing_is_cut_off_a_file_that_is_not_understood"),
    ]),
    "4": ("links, FIFOs and false names in a run", LINKS + [
        ("a log that names another run", "store", "a_log_that_names_another_run_is_refused"),
        ("a journal that names another run", "lib", "a_journal_of_another_run_is_refused"),
        ("an id is never a path", "lib", "an_id_is_never_a_path"),
    ]),
    "5": ("dangerous options for `mkfs`, `mount` and other tools in a study", WORDS),
    "6": ("a disk that is in use", IN_USE),
    "7": ("a disk id that leads to another disk after the check", REPOINTED),
    "8": ("the server's memory and threads", SERVER),
    "9": ("a directory that is replaced by a link", [
        ("while `clean` works", "store", "a_directory_swapped_for_a_link_leads_clean_nowhere"),
        ("while workloads run", "swapped", "*"),
        ("trees", "lib", "host::tree::tests::*"),
    ]),
    "10": ("a disk with data that no tool recognises", CONTENT),
    "11": ("files, lines and replies without end", ENDLESS),
    "12": ("a trial that was paused", PAUSES),
    "13": ("smaller defects", [
        ("`clean` that leaves a journal alone exits with 4", "store", "one_hostile_journal_does_not*"),
        ("a damaged index", "store", "a_damaged_index_is_rebuilt"),
        *MENDED,
        ("a run whose directory is removed", "store", "a_run_whose_directory_is_removed*"),
        *NAMES,
        (".pmrc of others", "endless", "postmark_obeys_no_file_that_another_user_can_write"),
        ("a lock of another user", "store", "another_user_can_lock_nothing_of_a_run"),
        ("a forged now.json", "serve", "a_forged_now_file_stops_no_other_process"),
        ("the process that is stopped", "lib", "only_the_process_that_holds_the_file_is_stopped"),
        ("two ids of one disk", "machine", "guarded::two_ids_of_one_disk"),
        ("a record on a full disk", "outputs", "a_record_on_a_full_disk*"),
        ("the same, byte by byte", "lib", "a_full_disk_leaves_whole_lines*"),
    ]),
    "D1": ("the owner of each file of the store is checked", STORE_OF_OTHERS + LINKS + [
        ("one place opens the store's files", "-p stackrace-tidy", "files_of_the_store_are_opened_in_one_place"),
        ("the rule finds another place", "-p stackrace-tidy", "a_file_of_the_store_opened_elsewhere*"),
        ("modes 0700 and 0600", "store", "what_a_run_leaves_is_for_its_user_alone"),
    ]),
    "D2": ("undo removes only what the run can prove is its own", UNDO + [
        ("daemons of others", "lib", "only_what_bears_the_mark_is_ended_and_all_it_began"),
        ("the NFS server of others", "lib", "only_our_own_nfs_server_is_ended"),
        ("a disk given to others since", "machine", "what_was_made_by_others_since_is_left_alone"),
    ]),
    "D3": ("the guard of disks", IN_USE + REPOINTED + CONTENT),
    "D4": ("a study gives data, not commands", WORDS + [
        ("words for layers that cannot be had", "lib", "stack::tests::refusals::*"),
    ]),
    "D5": ("output files replace only regular files", OUTPUTS),
    "D6": ("web server and connections have limits", SERVER + ENDLESS + NAMES),
    "D7": ("trials that were paused, suspended or starved are marked; a mended failure is measured again", PAUSES + MENDED),
    **ACCIDENTS,
}
