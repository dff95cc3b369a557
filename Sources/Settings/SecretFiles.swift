// Secrets that are none.

import Bus
import Logging
import TrackerLogic

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Secrets that are none: files that everybody on the machine can read, and a key that anybody guesses.
///
/// A tracker works with them all the same, so it says so at its start.
extension ServerConfiguration {
    /// Warns of what an operator should put right.
    public func warn(_ logger: Logger, file: String?) {
        for warning in warnings(file: file) { logger.warning("\(warning)") }
    }

    /// What an operator should put right, a sentence each.
    ///
    /// - Parameter file: the configuration's own, if it came from one.
    /// - Returns: nothing where all is well.
    public func warnings(file: String? = nil) -> [String] {
        var warnings: [String] = []
        func look(_ path: String?, _ what: String) {
            guard let path, let mode = modeForOthers(path) else { return }
            warnings.append(
                "everybody on this machine can read \(what) in \(path) (mode \(String(mode, radix: 8))); "
                    + "run: chmod o= \(path)")
        }
        if let file, holdsPassword(file, inForce: cluster.bus?.password) { look(file, "the broker's password") }
        if console != nil { look(consoleTokenFile, "the console's token") }
        look(accountsFile, "the hashes of the accounts' passwords")
        if accessMode == .private { look(usersFile, "the users' passkeys") }
        if !dataDirectory.isEmpty, isOpenToOthers(dataDirectory) {
            for name in ["tracker.sqlite", "tracker.sqlite-wal"] {
                look(joinedPath(dataDirectory, name), "the cluster's secret and all addresses")
            }
        }
        if let key = try? clusterKey(), key.isMonotonous, let path = cluster.keyFile {
            warnings.append(
                "the cluster key in \(path) is one byte over and over, which anybody can guess; make a new one for all "
                    + "trackers with: openssl rand -hex 32")
        }
        return warnings
    }
}

/// The permissions of a file that others than its owner and group can read; nil where they cannot, or it is not there.
private func modeForOthers(_ path: String) -> mode_t? {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o004 != 0 else { return nil }
    return status.st_mode & 0o7777
}

private func isOpenToOthers(_ directory: String) -> Bool {
    var status = stat()
    return stat(directory, &status) == 0 && status.st_mode & 0o001 != 0
}

/// Whether a configuration file gives the bus a password, however it is escaped there, or has the one in force anywhere
/// else, such as in a comment.
private func holdsPassword(_ path: String, inForce password: String?) -> Bool {
    guard let bytes = try? BoundedFile.read(path, atMost: ServerConfiguration.maxFileByteCount) else { return false }
    let text = String(decoding: bytes, as: UTF8.self)
    if let password, !password.isEmpty, text.contains(password) { return true }
    guard let root = try? TOMLReader.read(text), case .table(let cluster)? = root.content(of: "cluster"),
        case .single(.text(let url))? = cluster.content(of: "bus"), let bus = try? BusOptions(url: url)
    else { return false }
    return bus.password?.isEmpty == false
}

extension TOMLTable {
    fileprivate func content(of key: String) -> TOMLValue.Content? { entries.first { $0.key == key }?.value.content }
}
