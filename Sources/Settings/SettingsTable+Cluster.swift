// The settings of a cluster: a part of the one table (`SettingsTable.swift`).

import TrackerLogic

extension Setting {
    static let clustering =
        [
            Setting(
                .bus, flag: "bus", .bus(\.cluster.bus), "The channel to the other trackers.",
                note: "stomp://USER:PASSWORD@HOST:61613[,HOST…] or stomp+tls://… for a broker (RabbitMQ, ActiveMQ, "
                    + "Artemis), multicast://GROUP:PORT for none, embedded or embedded:HOST:PORT for a small broker "
                    + "inside. Other users of this machine can read flags: a login is better in the file.",
                example: "\"stomp://tracker:secret@broker.example:61613\"",
                defaultNote: "none: a tracker that is alone"),
            Setting(
                .clusterKeyFile, flag: "cluster-key-file", .optionalPath(\.cluster.keyFile, "FILE"),
                "File with the secret that all trackers of the cluster share.",
                note: "At least 32 bytes, for its owner only; for example from: (umask 077; openssl rand -hex 32 > "
                    + "cluster.key).",
                example: "\"cluster.key\"", defaultNote: "none"),
            Setting(
                .clusterName, flag: "cluster-name", .clusterName(\.cluster.name),
                "Tells clusters apart that share a bus."),
            Setting(
                .profile, flag: "profile", .optionalChoice(\.cluster.profile, "NAME"),
                "A bundle of policies with a name.",
                note: "\"classic\": highest id, majority of the active; \"rotating\": next id in turn, all active, "
                    + "twice as fast; \"lowest\": lowest id, all active, asked again; \"paxos\": highest id, majority "
                    + "of the members. docs/protocol.md says what each promises.",
                example: "\"paxos\"", defaultNote: "paxos with members, classic without"),
            Setting(
                .members, flag: "members", .ids(\.cluster.members),
                "The ids that vote when the cluster is formed, the same on all trackers.",
                note: "Later the cluster's log has them: see `tracker members`.",
                example: "[1, 2, 3]", defaultNote: "none"),
            Setting(
                .spare, flag: "spare", .boolean(\.cluster.isSpare),
                "This tracker is not among the members: it follows, and gets its vote by `tracker members add`."),
        ] + policies + clusterHooks

    private static let policies = [
        Setting(
            .mode, flag: "mode", .optionalChoice(\.cluster.mode, "MODE"), "What makes a quorum.",
            note: "\"quorum\": a majority of the members; nothing answered is ever lost. \"survivor\": a majority of "
                + "the trackers now active, down to the last; after a partition, a merge.",
            example: "\"quorum\"", defaultNote: "quorum with members, survivor without"),
        Setting(
            .election, flag: "election", .optionalChoice(\.cluster.election, "WHO"), "Who is preferred as master.",
            note: "\"highest\" id, \"lowest\", or the \"next\" in turn after the last master.",
            example: "\"highest\"", defaultNote: "as the profile says"),
        Setting(
            .vote, flag: "vote", .optionalChoice(\.cluster.vote, "WHOSE"), "Whose vote an update needs.",
            note: "\"majority\"; \"all\" who are active, where one that stays silent is dropped; \"all-asked-again\", "
                + "where it is asked again until it votes or is down.",
            example: "\"all\"", defaultNote: "as the profile says"),
        Setting(
            .votePatience, flag: "vote-patience", .optionalSpan(\.cluster.votePatience, ClusterLimits.votePatience),
            "How long \"all\" waits for a vote before it drops a tracker, or how often \"all-asked-again\" asks.",
            example: "\"5s\"", defaultNote: "5s, or 10s between questions"),
        Setting(
            .keepalive, flag: "keepalive", .optionalSpan(\.cluster.keepalive, ClusterLimits.keepalive),
            "Between two signs of life.", note: "The same on all trackers.",
            example: "\"1s\"", defaultNote: "1s; 500ms with the profile rotating"),
        Setting(
            .missed, flag: "missed", .optionalCount(\.cluster.missed, ClusterLimits.missed),
            "After so many keepalives without a word a tracker is down.", note: "The same on all trackers.",
            example: "2", defaultNote: "2"),
        Setting(
            .entry, flag: "entry", .optionalChoice(\.cluster.entry, "WHERE"), "Where clients knock.",
            note: "\"any\": each tracker answers its own clients; \"group\": all hear a multicast group, and the "
                + "master answers.",
            example: "\"group\"", defaultNote: "group where there is one, else any"),
        Setting(
            .group, flag: "group", .addresses(\.cluster.groups),
            "The multicast group in which clients look for the cluster: one for each family at most.",
            example: "[\"239.192.7.7:6969\"]", defaultNote: "none"),
        Setting(
            .interface, flag: "interface", .optionalText(\.cluster.interface, "NAME"),
            "The network interface of the group: its name, or an address of it.",
            example: "\"eth0\"", defaultNote: "the system's choice"),
    ]

    private static let clusterHooks = [
        Setting(
            .onMaster, flag: "on-master", .optionalText(\.cluster.hooks.onMaster, "COMMAND"),
            "Run by /bin/sh when this tracker becomes master: for a floating address, or DNS.",
            note: "It finds TRACKER_ROLE, TRACKER_ID, TRACKER_EPOCH, TRACKER_MASTER and TRACKER_ADVERTISE in its "
                + "environment, is stopped after 10 seconds, and never runs beside another.",
            example: "\"ip address replace 192.0.2.9/24 dev eth0\"", defaultNote: "nothing"),
        Setting(
            .onSlave, flag: "on-slave", .optionalText(\.cluster.hooks.onSlave, "COMMAND"),
            "Run by /bin/sh at the start, and when this tracker is no longer master.",
            example: "\"ip address delete 192.0.2.9/24 dev eth0\"", defaultNote: "nothing"),
        Setting(
            .advertise, flag: "advertise", .announceURL(\.cluster.hooks.advertised),
            "The announce URL under which clients reach this tracker; shown by the status, and told to the commands.",
            example: "\"udp://tracker1.example:6969/announce\"", defaultNote: "not told"),
    ]
}
