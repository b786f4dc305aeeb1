//! Which processes of which clients take part in a trial, and with which rank.

use stackrace_remote::agent::message::Clients;

/// A process of a client that takes part; its rank is its place among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seated {
    /// Its number as a machine of the coordinator's.
    pub machine: u32,
    /// The client's name.
    pub client: String,
    /// Number of the process among those of the client, from 1.
    pub process: u32,
}

/// The processes that take part in a round, by rank: so many clients, so many processes on each.
///
/// The list of clients is turned by one from round to round. So each client takes part as often as
/// any other where only some of them are needed, and has each rank in turn.
pub(super) fn seated(clients: &Clients, count: usize, processes: u32, round: u32) -> Vec<Seated> {
    let all = clients.names.len();
    let first = (round as usize).saturating_sub(1) % all.max(1);
    let chosen: Vec<usize> = (0..count.min(all)).map(|at| (first + at) % all).collect();
    let mut seats = Vec::new();
    for process in 0..processes.min(clients.processes) {
        // Neighbours by rank are on different clients: what one wrote is not in the other's cache.
        seats.extend(chosen.iter().map(|client| Seated {
            machine: process * all as u32 + *client as u32 + 1,
            client: clients.names[*client].clone(),
            process: process + 1,
        }));
    }
    seats
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Clients {
        Clients {
            names: ["a", "b", "c"].map(str::to_owned).to_vec(),
            processes: 2,
        }
    }

    #[test]
    fn each_client_has_each_rank_in_turn() {
        let names = |round| {
            let seats = seated(&three(), 3, 1, round).into_iter();
            seats.map(|seat| seat.client).collect::<Vec<_>>().concat()
        };
        assert_eq!([1, 2, 3, 4].map(names), ["abc", "bca", "cab", "abc"]);
    }

    #[test]
    fn a_part_of_the_clients_is_another_one_each_round_and_machines_keep_their_numbers() {
        let seats = seated(&three(), 2, 2, 2);
        let machines: Vec<u32> = seats.iter().map(|seat| seat.machine).collect();
        assert_eq!(machines, [2, 3, 5, 6]);
        let ranks: Vec<_> = seats
            .iter()
            .map(|seat| (&*seat.client, seat.process))
            .collect();
        assert_eq!(ranks, [("b", 1), ("c", 1), ("b", 2), ("c", 2)]);
        // More than there are: all there are.
        assert_eq!(seated(&three(), 9, 9, 1).len(), 6);
    }
}
