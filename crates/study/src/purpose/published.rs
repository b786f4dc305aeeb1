//! What others have published as enough for a purpose. Where there is none, nothing is made up.

/// A bound that others publish as enough, and where.
#[derive(Debug, Clone, Copy)]
pub struct PublishedRequirement {
    /// Name of the purpose.
    pub purpose: &'static str,
    /// Metric that is bounded, after the name of its workload where several have it.
    pub metric: &'static str,
    /// Bound with its sign.
    pub bound: &'static str,
    /// Publisher and title.
    pub source: &'static str,
    /// Address of the source.
    pub url: &'static str,
}

/// Every published requirement.
const PUBLISHED: &[PublishedRequirement] = &[PublishedRequirement {
    purpose: "etcd",
    metric: "fsync latency p99",
    bound: "<= 10 ms",
    source: "etcd's FAQ",
    url: "https://etcd.io/docs/v3.5/faq/",
}];

/// The published requirements of a purpose; none if there are none.
pub fn published(purpose: &str) -> impl Iterator<Item = &'static PublishedRequirement> {
    PUBLISHED.iter().filter(move |one| one.purpose == purpose)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purpose;

    #[test]
    fn every_published_requirement_is_of_a_purpose_and_names_its_source() {
        for one in PUBLISHED {
            assert!(purpose::find(one.purpose).is_some(), "{}", one.purpose);
            assert!(one.url.starts_with("https://"), "{}", one.url);
            assert!(!one.source.is_empty());
        }
    }
}
