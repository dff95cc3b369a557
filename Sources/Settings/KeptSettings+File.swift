// How what the console keeps gets to the disk, and away from it.

import Primitives

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

extension KeptSettings {
    /// Has the file say this, and nothing else; removes it where nothing is kept.
    ///
    /// It is written beside the old one and put into its place, so that a crash leaves the one or the other.
    ///
    /// - Throws: why the disk does not take it; the old file is there as before.
    public func store() throws(TextFileError) {
        guard !text.isEmpty else {
            guard unlink(path) == 0 || errno == ENOENT else { throw failure("removed", errno) }
            return syncDirectory()
        }
        let draft = path + ".new"
        // What is left of a crash is of no use, and may be a link.
        unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure("written", errno) }
        let bytes = Array(text.utf8)
        let isWritten = write(descriptor, bytes, bytes.count) == bytes.count && fsync(descriptor) == 0
        let number = errno
        close(descriptor)
        guard isWritten, rename(draft, path) == 0 else {
            // A write that ends early has met the end of the room.
            let number = isWritten ? errno : number == 0 ? ENOSPC : number
            unlink(draft)
            throw failure("written", number)
        }
        syncDirectory()
    }

    private func failure(_ what: String, _ number: Int32) -> TextFileError {
        TextFileError(path: path, problems: [.init("it cannot be \(what): \(String(cString: strerror(number)))")])
    }

    private func syncDirectory() {
        let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
