// Where mistakes about what people keep at the console are looked for.

import Primitives
import Simulator
import TrackerLogic

extension Plant {
    /// People at three consoles, and trackers that die and come back.
    @Sendable
    private static func consoles(_ options: inout ScenarioOptions) {
        options.setStewards(3)
        options.maxUploads = 8
    }

    /// The same, where no more than one upload may be under way.
    @Sendable
    private static func oneUpload(_ options: inout ScenarioOptions) {
        options.setStewards(3)
        options.maxUploads = 1
    }

    /// The same, where snapshots are made all the time, and whoever lags behind needs the whole state.
    @Sendable
    private static func snapshots(_ options: inout ScenarioOptions) {
        options.setStewards(3)
        options.maxUploads = 8
        (options.snapshotAge, options.snapshotLogByteCount, options.tailCount) = (.seconds(1), 300, 1)
    }

    /// A minority is told other settings, and trackers tell each other how they fare.
    @Sendable
    private static func misconfigured(_ options: inout ScenarioOptions) { options.harden(.misconfigured) }

    /// Mistakes of rules 24, 25 and 35.
    static let ofConsole: [Plant] = [
        Plant(.changeToldEarly, .changesAreDecided, on: consoles),
        Plant(.expectationIgnored, .changesFollow, on: consoles),
        Plant(.lastAdminLost, .adminStays, .statesAgree, on: consoles),
        Plant(.sessionsOutliveAccount, .sessionsHaveAccounts, .statesAgree, on: consoles),
        Plant(.sessionsOutlivePassword, .sessionsHaveAccounts, .statesAgree, on: consoles),
        Plant(.tornFileShown, .torrentFilesAreWhole, .statesAgree, on: consoles),
        Plant(.uploadsMixed, .torrentFilesAreWhole, .statesAgree, .changesAreDecided, on: consoles),
        Plant(.uploadsKept, .uploadsAreForgotten, on: consoles),
        Plant(.uploadsUnbounded, .queuesAreBounded, on: oneUpload),
        Plant(.uploadsNotInChunks, .statesAgree, .healedIsOne, on: snapshots),
        Plant(.passkeyOutlivesAccount, .admissionIsJustified, on: consoles),
        Plant(.passkeysNotRestored, .refusalIsJustified, on: snapshots),
        Plant(.filesStopWithSwarms, .statesAgree, in: [.alone], on: consoles),
        Plant(.uploadTakenByFiles, .uploadsStay, on: consoles),
        Plant(.fileTakesUpload, .uploadsStay, on: consoles),
        Plant(.fileKeptWithoutTorrent, .filesAreRegistered, on: consoles),
        Plant(.unregisteredFileKept, .filesAreRegistered, on: consoles),
        Plant(.settingsIgnored, .unlikeAreToldApart, on: misconfigured),
        Plant(.reportOfAnother, .statusIsTrue, on: misconfigured),
    ]
}
