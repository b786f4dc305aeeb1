//! Pictures as PNG.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Dots for each unit of the picture: sharp on paper and on dense screens.
const DOTS: f32 = 2.0;
/// Families that have all the signs we draw, the likeliest first.
const FAMILIES: [&str; 5] = [
    "DejaVu Sans",
    "Noto Sans",
    "Liberation Sans",
    "Arial",
    "Helvetica",
];

/// Draws pictures with the fonts of this machine.
pub struct Painter {
    options: Options<'static>,
}

impl Painter {
    /// Looks for the fonts.
    ///
    /// # Errors
    /// There is none: a picture would have no text.
    pub fn new() -> Result<Self, String> {
        let mut options = Options::default();
        let fonts = options.fontdb_mut();
        fonts.load_system_fonts();
        let there = |name: &str| {
            let mut faces = fonts.faces();
            faces.any(|face| face.families.iter().any(|(family, _)| family == name))
        };
        let known = FAMILIES.iter().find(|name| there(name));
        let first = || Some(fonts.faces().next()?.families.first()?.0.clone());
        let Some(family) = known.map(|name| (*name).to_owned()).or_else(first) else {
            return Err("this machine has no font to write with".to_owned());
        };
        fonts.set_sans_serif_family(&family);
        // Also where a family is named that is not there.
        options.font_family = family;
        Ok(Self { options })
    }

    /// A picture as PNG.
    ///
    /// # Errors
    /// The SVG cannot be read, or is too large for the memory.
    pub fn paint(&self, svg: &str) -> Result<Vec<u8>, String> {
        let tree = Tree::from_str(svg, &self.options).map_err(|error| error.to_string())?;
        let dots = |length: f32| (length * DOTS).ceil() as u32;
        let size = tree.size();
        let mut image =
            Pixmap::new(dots(size.width()), dots(size.height())).ok_or("it is too large")?;
        let scale = Transform::from_scale(DOTS, DOTS);
        resvg::render(&tree, scale, &mut image.as_mut());
        image.encode_png().map_err(|error| error.to_string())
    }
}
