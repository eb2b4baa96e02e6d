//! The parts of the pictures.

use std::fmt::Write;

use crate::run::{END, SECOND};

/// The left and the right end of the time axis.
pub(crate) const LEFT: u64 = 112;
const SCALE: u64 = 33;
const RIGHT: u64 = LEFT + END / SECOND * SCALE;
const WIDTH: u64 = RIGHT + 20;

/// The styles. The pictures have a background of their own, since the page around them may be light where the system is dark.
const STYLE: &str = "\
<style>\
text{font:12px system-ui,sans-serif;fill:#1f2328}\
.b{font-weight:bold}.m{font-family:ui-monospace,monospace}.e{text-anchor:end}.c{text-anchor:middle}\
.p{fill:#fff;stroke:#d0d7de}.g{stroke:#d0d7de}\
.a,.w,.x{fill:none;stroke:#0a5dc2;stroke-width:6;stroke-linecap:round}.x{stroke:#c2410c;stroke-width:1.5}\
.w{stroke-width:1.5}.h{fill:#fff;stroke:#0a5dc2;stroke-width:1.5}.l{fill:#0a5dc2;opacity:.25}.big{stroke-width:12}\
.x.big{stroke-width:3.5}\
@media(prefers-color-scheme:dark){\
text{fill:#e6edf3}.p{fill:#161b22;stroke:#3d444d}.g{stroke:#3d444d}.a,.w{stroke:#6cb6ff}.x{stroke:#ff9a62}\
.h{fill:#161b22;stroke:#6cb6ff}.l{fill:#6cb6ff}}\
</style>\n";

/// A picture that is being drawn.
#[derive(Debug)]
pub(crate) struct Svg {
    body: String,
    title: String,
    description: String,
}

/// The marks of calls, all of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    /// A dot, where a call starts.
    Dot,
    /// A cross, where a call is refused.
    Cross,
}

impl Svg {
    /// Starts a picture. Title and description are for screen readers.
    pub(crate) fn new(title: &str, description: &str) -> Self {
        Svg { body: String::new(), title: title.to_owned(), description: description.to_owned() }
    }

    pub(crate) fn text(&mut self, x: u64, y: u64, class: &str, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\"{class}>{}</text>", escaped(text));
    }

    /// Draws marks at these times and heights.
    pub(crate) fn marks(&mut self, mark: Mark, is_big: bool, at: impl Iterator<Item = (u64, u64)>) {
        let mut path = String::new();
        for (time, y) in at {
            let x = self::x(time);
            _ = match (mark, is_big) {
                (Mark::Dot, _) => write!(path, "M{x} {y}h0"),
                (Mark::Cross, false) => {
                    write!(path, "M{} {}l5 5m0-5l-5 5", coordinate(time, -25), y as f64 - 2.5)
                }
                (Mark::Cross, true) => write!(path, "M{} {}l10 10m0-10l-10 10", coordinate(time, -50), y - 5),
            };
        }
        let class = match mark {
            Mark::Dot => "a",
            Mark::Cross => "x",
        };
        let big = if is_big { " big" } else { "" };
        self.path(&format!("{class}{big}"), &path);
    }

    /// Draws rings at these times and heights, where calls begin to wait.
    pub(crate) fn rings(&mut self, at: impl Iterator<Item = (u64, u64, u64)>) {
        for (time, y, cost) in at {
            let radius = if cost > 1 { 6.0 } else { 2.5 };
            _ = writeln!(self.body, "<circle class=\"h\" cx=\"{}\" cy=\"{y}\" r=\"{radius}\"/>", x(time));
        }
    }

    /// Draws a bar of this length, in the color of calls or that of lines.
    pub(crate) fn bar(&mut self, x: u64, y: u64, length: u64, of_calls: bool) {
        let class = if of_calls { "a" } else { "g" };
        let style = "stroke-width:14;stroke-linecap:butt";
        _ = writeln!(self.body, "<path class=\"{class}\" style=\"{style}\" d=\"M{x} {y}h{length}\"/>");
    }

    pub(crate) fn path(&mut self, class: &str, path: &str) {
        if !path.is_empty() {
            _ = writeln!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    /// Draws the time axis below `bottom`, with lines up to `top`.
    pub(crate) fn axis(&mut self, top: u64, bottom: u64) {
        let lines = (0..=END).step_by(5 * SECOND as usize);
        let grid: String = lines.clone().map(|time| format!("M{} {top}V{bottom}", x(time))).collect();
        self.path("g", &format!("{grid}M{LEFT} {bottom}H{RIGHT}"));
        for time in lines {
            let label = format!("{} s", time / SECOND);
            self.text(LEFT + time / SECOND * SCALE, bottom + 16, "c", &label);
        }
    }

    /// Draws the legend from `x` on.
    pub(crate) fn legend(&mut self, y: u64, waits: bool) {
        let time = |x: u64| (x - LEFT) * SECOND / SCALE;
        let mut at = LEFT + 4;
        self.marks(Mark::Dot, false, [(time(at), y - 4)].into_iter());
        self.text(at + 10, y, "", "admitted");
        at += 84;
        self.marks(Mark::Cross, false, [(time(at), y - 4)].into_iter());
        self.text(at + 10, y, "", "refused");
        at += 80;
        if waits {
            self.rings([(time(at), y - 4, 1)].into_iter());
            self.text(at + 10, y, "", "waits");
            at += 66;
        }
        self.marks(Mark::Dot, true, [(time(at), y - 4)].into_iter());
        self.text(at + 12, y, "", "larger: a call of cost 4");
    }

    /// Returns the picture.
    pub(crate) fn finish(self, height: u64) -> String {
        let Svg { body, title, description } = self;
        let (title, description) = (escaped(&title), escaped(&description));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\">\n<title>{title}</title>\n<desc>{description}</desc>\n{STYLE}\
             <rect class=\"p\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n{body}</svg>\n",
            WIDTH - 1,
            height - 1
        )
    }
}

/// Returns the place of a time on the axis.
pub(crate) fn x(time: u64) -> String {
    coordinate(time, 0)
}

/// Returns a place this many tenths of a pixel from that of a time.
fn coordinate(time: u64, offset: i64) -> String {
    let tenths = (LEFT * 10 + time * SCALE * 10 / SECOND) as i64 + offset;
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        digit => format!("{}.{digit}", tenths / 10),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
