// What the system says of this process.

import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// What the system says of this process, under the names that every Prometheus client library uses.
public struct ProcessMetrics: Sendable, Equatable {
    /// Memory of the process that is in RAM.
    public var residentByteCount: UInt64
    /// Address space of the process.
    public var virtualByteCount: UInt64
    /// User and system time together.
    public var cpuSeconds: Double
    /// File descriptors that are open.
    public var openFileCount: Int
    /// The soft limit.
    public var maxFileCount: UInt64
    /// Since 1970.
    public var startTimeSeconds: Double

    /// Reads `/proc`.
    ///
    /// - Returns: nil where there is no such thing.
    public static func read() -> ProcessMetrics? {
        guard let memory = text(of: "/proc/self/statm")?.split(separator: " "), memory.count >= 2,
            let virtualPages = UInt64(memory[0]), let residentPages = UInt64(memory[1]),
            let status = text(of: "/proc/self/stat"),
            // The command's name is in brackets and may hold anything, brackets and spaces too.
            let end = status.lastIndex(of: ")"),
            let boot = bootTime()
        else { return nil }
        // From the third field on; `man 5 proc` counts from 1.
        let fields = status[status.index(after: end)...].split(separator: " ")
        func field(_ number: Int) -> Double? { fields.count > number - 3 ? Double(fields[number - 3]) : nil }
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        let pageByteCount = UInt64(max(sysconf(Int32(_SC_PAGESIZE)), 0))
        guard ticks > 0, let user = field(14), let system = field(15), let start = field(22),
            let files = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        else { return nil }
        return ProcessMetrics(
            residentByteCount: residentPages * pageByteCount, virtualByteCount: virtualPages * pageByteCount,
            cpuSeconds: (user + system) / ticks,
            // One of them is the directory being read.
            openFileCount: max(files.count - 1, 0), maxFileCount: maxFileCount(),
            startTimeSeconds: boot + start / ticks)
    }

    /// Files that the process has open, and may have; zeros where that cannot be read.
    package static func openFiles() -> (open: Int, maximum: UInt64) {
        let files = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        return (max((files?.count ?? 1) - 1, 0), maxFileCount())
    }

    /// Appends the figures under the names of Prometheus' client libraries.
    public func write(into text: inout PrometheusText) {
        text.single(
            "process_cpu_seconds_total", .counter, help: "Total user and system CPU time spent in seconds.",
            cpuSeconds)
        text.single("process_max_fds", .gauge, help: "Maximum number of open file descriptors.", maxFileCount)
        text.single("process_open_fds", .gauge, help: "Number of open file descriptors.", openFileCount)
        text.single("process_resident_memory_bytes", .gauge, help: "Resident memory size in bytes.", residentByteCount)
        text.single(
            "process_start_time_seconds", .gauge,
            help: "Start time of the process since unix epoch in seconds.", startTimeSeconds)
        text.single("process_virtual_memory_bytes", .gauge, help: "Virtual memory size in bytes.", virtualByteCount)
    }

    /// The soft limit on open files; 0 where it cannot be read.
    static func maxFileCount() -> UInt64 {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        return UInt64(limit.rlim_cur)
    }

    private static func bootTime() -> Double? {
        text(of: "/proc/stat")?.split(separator: "\n").first { $0.hasPrefix("btime ") }
            .flatMap { Double($0.dropFirst(6)) }
    }

    private static func text(of path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
}
