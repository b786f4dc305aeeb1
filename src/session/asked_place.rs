//! Which options of the command line belong to which places: none is ever ignored.
//!
//! A run takes place in one of seven ways, and some options mean something in a few of them only. One
//! that would be ignored is refused with the reason, before anything is touched.

use stackrace_base::failure::Failure;
use stackrace_study::study::{HOST, Study};

use super::machine_options::MachineOptions;

/// Where a study is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskedPlace {
    /// On this machine.
    Here,
    /// On machines over SSH, with this program on them.
    Ssh,
    /// On machines that have nothing but a shell.
    Shell,
    /// By several clients of one storage.
    Clients,
    /// In guests of the lab, in real time.
    Lab,
    /// In guests of the lab, in virtual time.
    Virtual,
    /// On a machine whose power is really cut.
    RealCut,
}

/// An option that some places have no use for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlacedOption {
    /// `--anyway` of `run` and `resume`: measure although another run measures in the same directories.
    Anyway,
    /// `--clients`: several machines measure one storage.
    Clients,
    /// `--cut` and `--restore`: take the power of a real machine.
    Cut,
    /// `--ssh`, where the command line has it: a variable of the environment is for those commands that need it.
    Ssh,
    /// `--sudo`: be root on the other machines.
    Sudo,
    /// `--wipe`: write over a disk that carries something.
    Wipe,
}

impl PlacedOption {
    /// Each of them once, for tables of tests.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 6] = [
        Self::Anyway,
        Self::Clients,
        Self::Cut,
        Self::Ssh,
        Self::Sudo,
        Self::Wipe,
    ];

    /// As it is typed.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Anyway => "--anyway",
            Self::Clients => "--clients",
            Self::Cut => "--cut",
            Self::Ssh => "--ssh",
            Self::Sudo => "--sudo",
            Self::Wipe => "--wipe",
        }
    }

    /// Why it would be ignored at a place; none: it is used there, or refused by what it is about.
    fn unused_at(self, place: AskedPlace) -> Option<&'static str> {
        use AskedPlace::{Clients, Here, Lab, RealCut, Shell, Ssh, Virtual};
        match (self, place) {
            (Self::Anyway, Here | Ssh | Shell | Clients) => None,
            (Self::Anyway, Lab | Virtual) => {
                Some("is for directories of yours, and no other run measures in a guest of the lab")
            }
            (Self::Anyway, RealCut) => Some(
                "is for a run beside another one, and a machine whose power is cut has one alone",
            ),
            (Self::Clients, Lab | Virtual) => {
                Some("names machines of yours, and guests of the lab have a storage of their own")
            }
            (Self::Clients, _) => None,
            (Self::Cut, Lab | Virtual) => {
                Some("is for real machines: guests of the lab are cut without a command")
            }
            (Self::Cut, Clients) => {
                Some("is for stacks on one machine, and clients share a storage")
            }
            (Self::Cut, _) => None,
            (Self::Ssh, Here) => Some("says how other machines are reached, and none is named"),
            (Self::Sudo, Here) => Some("is for other machines, and none is named"),
            (Self::Ssh | Self::Sudo, Lab | Virtual) => {
                Some("is for other machines: guests of the lab are reached without it")
            }
            (Self::Ssh | Self::Sudo, Ssh | Shell | Clients | RealCut) => None,
            (Self::Wipe, Lab | Virtual) => {
                Some("is for disks of yours, and those of the lab hold nothing")
            }
            (Self::Wipe, Clients) => {
                Some("is for disks that are set up, and clients measure directories that are there")
            }
            (Self::Wipe, Here | Ssh | Shell | RealCut) => None,
        }
    }
}

impl AskedPlace {
    /// The place that the options name for a study; `lab`: in the lab, and whether its clock is virtual.
    pub(crate) fn of(study: &Study, machines: &MachineOptions<'_>, lab: Option<bool>) -> Self {
        let hosts = study.places().is_some_and(|factor| factor.name == HOST);
        let elsewhere = hosts || !machines.on.is_empty() || !machines.peers.is_empty();
        match (lab, machines.clients.started) {
            (Some(true), _) => Self::Virtual,
            (Some(false), _) => Self::Lab,
            (None, Some(_)) => Self::Clients,
            (None, None) if machines.agentless => Self::Shell,
            (None, None) if elsewhere => Self::Ssh,
            (None, None) => Self::Here,
        }
    }

    /// Refuses an option that would be ignored there.
    ///
    /// # Errors
    /// Which one, and why it means nothing there.
    pub(crate) fn check(self, given: &[PlacedOption]) -> Result<(), Failure> {
        let mut unused = given
            .iter()
            .filter_map(|one| Some((one, one.unused_at(self)?)));
        match unused.next() {
            None => Ok(()),
            Some((option, why)) => {
                let word = option.word();
                Err(Failure::usage(format!("{word} {why}")).next(format!("leave {word} out")))
            }
        }
    }
}

/// Those of `options` whose flag is set.
pub(crate) fn given(options: &[(PlacedOption, bool)]) -> Vec<PlacedOption> {
    let set = options.iter().filter(|(_, set)| *set);
    set.map(|(option, _)| *option).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [AskedPlace; 7] = [
        AskedPlace::Here,
        AskedPlace::Ssh,
        AskedPlace::Shell,
        AskedPlace::Clients,
        AskedPlace::Lab,
        AskedPlace::Virtual,
        AskedPlace::RealCut,
    ];

    #[test]
    fn every_option_that_is_refused_somewhere_is_used_somewhere_else() {
        for option in PlacedOption::ALL {
            let refused = |place: &&AskedPlace| place.check(&[option]).is_err();
            let places = PLACES.iter().filter(refused).count();
            assert!((1..PLACES.len()).contains(&places), "{option:?}");
        }
    }

    #[test]
    fn of_a_pair_the_one_that_means_nothing_is_named() {
        for place in PLACES {
            for one in PlacedOption::ALL {
                for other in PlacedOption::ALL {
                    let wrong = [one, other]
                        .into_iter()
                        .find(|each| each.unused_at(place).is_some());
                    let said = place.check(&[one, other]).err().map(Failure::into_parts);
                    assert_eq!(
                        wrong.is_some(),
                        said.is_some(),
                        "{place:?} {one:?} {other:?}"
                    );
                    if let (Some(wrong), Some((text, next))) = (wrong, said) {
                        assert!(text.starts_with(wrong.word()), "{text}");
                        assert_eq!(next, format!("leave {} out", wrong.word()));
                    }
                }
            }
        }
    }
}
