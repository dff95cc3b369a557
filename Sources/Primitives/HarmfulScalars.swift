// Characters that a terminal or a reader's eye would obey rather than show.

extension Unicode.Scalar {
    /// Control characters, also those of ISO 6429 beyond ASCII (U+009B begins a terminal's command as ESC [ does), and
    /// what turns the writing direction or ends a line without being a line feed.
    public var isHarmful: Bool {
        switch value {
        case 0...0x1F, 0x7F...0x9F: true
        case 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
