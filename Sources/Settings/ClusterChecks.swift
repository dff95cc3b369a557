// What must hold between the settings of a cluster.

import Datagrams
import Primitives
import TrackerLogic

extension ConfigurationLoader {
    /// What the logic is told, and what contradicts what.
    mutating func finishCluster() {
        // Where nobody has given it a number, its cluster does.
        if configuration.cluster.bus != nil, places[.id] == nil, configuration.cluster.members.isEmpty {
            configuration.node.id = 0
        }
        configuration.node.cluster = configuration.cluster.policy ?? .alone
        guard areSound(.bus) else { return }
        if configuration.cluster.bus == nil {
            checkAlone()
        } else {
            checkKey()
            checkMode()
            checkMembers()
            checkVote()
        }
        checkEntry()
    }

    private func given(_ key: SettingKey) -> Bool { places[key] != nil }

    private func flag(_ key: SettingKey) -> String { "--\(Setting.of(key).flag)" }

    /// A setting as a message proposes it: by its path and its flag.
    private func way(_ key: SettingKey) -> String { "\(key.path) (\(flag(key)))" }

    private mutating func checkAlone() {
        let cluster = configuration.cluster
        let useless: [(SettingKey, Bool)] = [
            (.clusterKeyFile, cluster.keyFile != nil), (.members, !cluster.members.isEmpty), (.spare, cluster.isSpare),
            (.profile, cluster.profile != nil), (.mode, cluster.mode != nil), (.election, cluster.election != nil),
            (.vote, cluster.vote != nil), (.votePatience, cluster.votePatience != nil),
            (.keepalive, cluster.keepalive != nil), (.missed, cluster.missed != nil),
            (.entry, cluster.entry == .group), (.group, !cluster.groups.isEmpty),
        ]
        for (key, isSet) in useless where isSet {
            report(
                key,
                "\(subject(key)) is for a tracker that acts with others, and this one has no bus to them; name it by "
                    + "\(way(.bus)), or leave \(subject(key)) out")
        }
        if configuration.node.id == 0 {
            report(.id, "\(subject(.id)) is 0, which leaves the number to a cluster's master; write at least 1")
        }
    }

    private mutating func checkKey() {
        guard areSound(.clusterKeyFile), configuration.cluster.keyFile == nil else { return }
        report(
            .bus,
            "\(subject(.bus)) is given, but no key by which the trackers know each other; make one with: "
                + "(umask 077; openssl rand -hex 32 > cluster.key), give it to all of them, and name it by "
                + way(.clusterKeyFile))
    }

    private mutating func checkMode() {
        let cluster = configuration.cluster
        guard areSound(.mode, .profile, .members) else { return }
        let isQuorumProfile = cluster.effectiveProfile == .paxos
        if let profile = cluster.profile {
            if isQuorumProfile, cluster.members.isEmpty {
                report(
                    .profile,
                    "\(subject(.profile)) is \"paxos\", which counts votes of members, but there are none; name them "
                        + "by " + way(.members))
            } else if !isQuorumProfile, !cluster.members.isEmpty, cluster.mode == nil {
                report(
                    later(.profile, .members),
                    "\(subject(.profile)) is \"\(profile.rawValue)\", in which those vote who are active, and "
                        + "\(subject(.members)) names voters; leave one of them out, or choose \"paxos\"")
            }
        }
        guard let mode = cluster.mode else { return }
        switch mode {
        case .survivor where !cluster.members.isEmpty:
            report(
                later(.mode, .members),
                "\(subject(.mode)) is \"survivor\", in which those vote who are active, and \(subject(.members)) names "
                    + "voters; leave one of them out")
        case .quorum where cluster.members.isEmpty && cluster.profile != .paxos:
            report(
                .mode,
                "\(subject(.mode)) is \"quorum\", which is a majority of the members, but there are none; name them by "
                    + way(.members))
        case .quorum, .survivor: break
        }
    }

    private mutating func checkMembers() {
        guard areSound(.members, .id, .spare) else { return }
        let (members, id) = (configuration.cluster.members, configuration.node.id)
        var seen: [UInt32] = []
        for member in members {
            guard !seen.contains(member) else {
                return report(.members, "\(subject(.members)) names \(member) twice; write it once")
            }
            seen.append(member)
        }
        guard !members.isEmpty else {
            if configuration.cluster.isSpare {
                report(
                    .spare, "\(subject(.spare)) is set, but there are no members to be apart from; leave it out")
            }
            return
        }
        let list = members.map(String.init).joined(separator: ", ")
        if !given(.id) || id == 0 {
            return report(
                given(.id) ? .id : .members,
                "\(subject(.members)) names who votes (\(list)), but this tracker has no number; say which one it is "
                    + "by " + way(.id))
        }
        if members.contains(id), configuration.cluster.isSpare {
            report(
                later(.spare, .members),
                "this tracker's number \(id) is among the members (\(list)), and \(subject(.spare)) says that it is "
                    + "not; leave that out, or give it another number")
        } else if !members.contains(id), !configuration.cluster.isSpare {
            report(
                later(.id, .members),
                "this tracker's number \(id) is not among the members (\(list)); correct one of them, or say by "
                    + "\(way(.spare)) that it is to follow without a vote")
        }
    }

    private mutating func checkVote() {
        guard areSound(.vote, .votePatience, .profile), configuration.cluster.votePatience != nil,
            configuration.node.cluster.vote == .majority
        else { return }
        report(
            later(.votePatience, .vote),
            "\(subject(.votePatience)) is for \"all\" and \"all-asked-again\", and the vote is by majority; leave it "
                + "out, or choose another by \(way(.vote))")
    }

    private mutating func checkEntry() {
        let cluster = configuration.cluster
        guard areSound(.entry, .group, .interface) else { return }
        for group in cluster.groups where !group.isGroup {
            report(
                .group,
                "\(subject(.group)) names \(group), which is no multicast address; write one of 239.0.0.0/8 or of "
                    + "ff00::/8, such as 239.192.7.7:6969")
        }
        for group in cluster.groups where group.isGroup && group.port == 0 {
            report(.group, "\(subject(.group)) names \(group.host) without a port; clients have to know it")
        }
        for isIPv4 in [true, false] where cluster.groups.count(where: { $0.isIPv4 == isIPv4 }) > 1 {
            report(
                .group,
                "\(subject(.group)) names several \(isIPv4 ? "IPv4" : "IPv6") groups; write one, for a request that "
                    + "comes in two would be two")
        }
        switch cluster.entry {
        case .group where cluster.groups.isEmpty && cluster.bus != nil:
            report(
                .entry,
                "\(subject(.entry)) is \"group\", but there is no group to be heard in; name it by \(way(.group)), for "
                    + "example 239.192.7.7:6969")
        case .any where !cluster.groups.isEmpty:
            report(
                later(.entry, .group),
                "\(subject(.entry)) is \"any\", and \(subject(.group)) names a group; leave one of them out")
        case nil, .any, .group: break
        }
        if cluster.interface != nil, cluster.groups.isEmpty {
            report(
                .interface,
                "\(subject(.interface)) is for a group, and there is none; name one by \(way(.group)), or write the "
                    + "interface of a multicast bus into its URL (?interface=NAME)")
        }
    }
}
