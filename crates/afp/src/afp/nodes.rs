//! Maps the kernel's inode numbers to places on the volume: AFP finds a directory by its number,
//! and a file only by its directory and name.
//!
//! The numbers are the server's own (CNID), except that the root is 1 for the kernel and 2 for AFP,
//! where 1 is the parent of the root.

use super::codes::ROOT;
use super::protocol::{CatalogPath, FileParameters};
use fuser::INodeNo;
use std::collections::HashMap;

/// One file or directory the kernel knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CatalogNode {
    /// Number of the directory it is in.
    pub(super) parent: u32,
    /// Its name in that directory.
    pub(super) name: String,
    /// Set if it is a directory.
    pub(super) is_directory: bool,
    /// Number of times that the kernel was told of it.
    told: u64,
}

/// The nodes that the kernel knows, by the server's numbers.
#[derive(Debug, Default)]
pub(super) struct Catalog(HashMap<u32, CatalogNode>);

/// The kernel's number of what has this one at the server.
pub(super) fn inode(id: u32) -> INodeNo {
    match id {
        ROOT => INodeNo::ROOT,
        other => INodeNo(u64::from(other)),
    }
}

/// The server's number of what has this one in the kernel.
pub(super) fn number(inode: INodeNo) -> u32 {
    match inode {
        INodeNo::ROOT => ROOT,
        INodeNo(other) => u32::try_from(other).unwrap_or(0),
    }
}

impl Catalog {
    /// The kernel is told of something once more.
    pub(super) fn tell(&mut self, at: CatalogPath<'_>, about: &FileParameters) {
        let node = self.0.entry(about.id).or_insert_with(|| CatalogNode {
            parent: at.directory,
            name: String::new(),
            is_directory: about.is_directory,
            told: 0,
        });
        node.told += 1;
        node.parent = at.directory;
        node.is_directory = about.is_directory;
        if node.name != at.name {
            node.name = at.name.to_string();
        }
    }

    /// The kernel forgets it so many times.
    pub(super) fn forget(&mut self, id: u32, times: u64) {
        if let Some(node) = self.0.get_mut(&id) {
            node.told = node.told.saturating_sub(times);
            // Only now: the kernel may still use the number.
            if node.told == 0 {
                self.0.remove(&id);
            }
        }
    }

    /// The known facts of a node; the root is always known.
    pub(super) fn get(&self, id: u32) -> Option<CatalogNode> {
        match id {
            ROOT => Some(CatalogNode {
                parent: ROOT,
                name: String::new(),
                is_directory: true,
                told: 1,
            }),
            _ => self.0.get(&id).cloned(),
        }
    }

    /// Gives a node another place and name.
    pub(super) fn moved(&mut self, from: CatalogPath<'_>, to: CatalogPath<'_>) {
        let was = |node: &&mut CatalogNode| node.parent == from.directory && node.name == from.name;
        if let Some(node) = self.0.values_mut().find(was) {
            node.parent = to.directory;
            node.name = to.name.to_string();
        }
    }
}

impl CatalogNode {
    /// The path by which the server finds it.
    pub(super) fn at(&self, id: u32) -> CatalogPath<'_> {
        if self.is_directory {
            CatalogPath {
                directory: id,
                name: "",
            }
        } else {
            CatalogPath {
                directory: self.parent,
                name: &self.name,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Unix;
    use super::*;

    fn about(id: u32, is_directory: bool) -> FileParameters {
        FileParameters {
            id,
            is_directory,
            modified: 0,
            length: 0,
            unix: Unix {
                uid: 0,
                gid: 0,
                mode: 0,
            },
            name: String::new(),
        }
    }

    fn at(directory: u32, name: &str) -> CatalogPath<'_> {
        CatalogPath { directory, name }
    }

    #[test]
    fn what_was_moved_is_found_where_it_is() {
        let mut nodes = Catalog::default();
        nodes.tell(at(ROOT, "d"), &about(17, true));
        nodes.tell(at(17, "f"), &about(18, false));
        nodes.tell(at(17, "f"), &about(18, false));
        nodes.moved(at(17, "f"), at(ROOT, "g"));
        assert_eq!(nodes.get(18).unwrap().at(18), at(ROOT, "g"));
        assert_eq!(nodes.get(17).unwrap().at(17), at(17, ""));
        nodes.forget(18, 1);
        assert!(nodes.get(18).is_some());
        nodes.forget(18, 1);
        assert_eq!(nodes.get(18), None);
    }

    #[test]
    fn the_root_has_two_numbers() {
        assert_eq!(inode(ROOT), INodeNo::ROOT);
        assert_eq!(number(INodeNo::ROOT), ROOT);
        assert_eq!(number(inode(17)), 17);
        assert_eq!(Catalog::default().get(ROOT).unwrap().at(ROOT), at(ROOT, ""));
    }
}
