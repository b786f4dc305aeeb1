//! Requests to the live page, from any sender.

use stackrace_show::web;

/// The head of a request is understood, refused with a status, or incomplete. A request without the
/// token is never let in.
pub fn request(data: &[u8]) {
    if let Some((status, let_in)) = web::judged(data) {
        assert!((200..600).contains(&status), "{status}");
        // No input names the token, which is longer than any that is kept.
        assert!(!let_in, "a stranger is let in");
    }
}
