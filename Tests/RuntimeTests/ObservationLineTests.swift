// What an operator reads in the log about his tracker's place in the cluster.

import Logging
import Server
import Testing
import TrackerLogic
import Wire

@Suite("Log: observations")
struct ObservationLineTests {
    private static func text(_ observation: Observation) -> String {
        let line = ObservationLine(observation, directory: "/data")
        let metadata = line.metadata.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        return "\(line.level): \(line.message)\(metadata)"
    }

    @Test(
        arguments: [
            (Observation.becameMaster(Epoch(round: 3, id: 2)), "notice: serving epoch=3.2 role=master"),
            (
                .follows(master: 2, Epoch(round: 3, id: 2)),
                "notice: following a master epoch=3.2 master=2 role=slave"
            ),
            (
                .steppedDown(Epoch(round: 3, id: 2), .superseded(Epoch(round: 4, id: 1))),
                "warning: no longer master: tracker 1 stands in a higher epoch (4.1) epoch=3.2"
            ),
            (
                .steppedDown(Epoch(round: 3, id: 2), .quorumLost),
                "warning: no longer master: too few of the voters are heard epoch=3.2"
            ),
            (
                .joinRefused(.idTaken),
                "error: this tracker may not join: another one has its id; give each tracker an id of its own"
            ),
            (.fenced, "warning: clients get no answer until the bus works and this tracker has caught up"),
            (.suspects(.zero), "notice: no master is there yet epoch=0.0"),
            (.suspects(Epoch(round: 3, id: 2)), "warning: the master is not heard any more epoch=3.2"),
            (.trackerDown(7), "warning: another tracker has left, or is not heard any more tracker=7"),
            (.membersChanged([1, 2, 9]), "notice: the members that vote are set members=1,2,9"),
            (
                .transferEnded(Position(index: 12, chain: 5)), "notice: the whole state is here index=12"
            ),
            (
                .storageFailed(.full, refused: 4),
                "error: announces are refused until they can be stored data=/data waiting=4"
            ),
            (
                .voteFailed(.full),
                "warning: disk full: this tracker's vote is missing; the others answer as long as enough of them can "
                    + "store data=/data"
            ),
            (.voteRecovered, "notice: the disk takes writes again, and this tracker votes"),
            (
                .settingsDiffer(tracker: 2, [.keepalive, .missed]),
                "error: another tracker was started with another --keepalive, --missed than this one, so neither hears "
                    + "the other: give all trackers of a cluster the same tracker=2"
            ),
            (
                .settingsDiffer(tracker: 2, [.members]),
                "error: another tracker was told of other --members than this one, and is not let in: name the same to "
                    + "all tracker=2"
            ),
            (
                .settingsDiffer(tracker: 2, [.interval]),
                "warning: another tracker was started with another --interval than this one: what the master has "
                    + "counts; give all trackers of a cluster the same tracker=2"
            ),
            (
                .steppedDown(Epoch(round: 3, id: 2), .diskBroken),
                "warning: no longer master: its disk failed epoch=3.2"
            ),
            (.steppedDown(Epoch(round: 3, id: 2), .stopping), "warning: no longer master: it stops epoch=3.2"),
            (.commandDropped("it is late"), "info: a command was not carried out: it is late"),
            (.commandRefused("no such id"), "error: a command was refused: no such id"),
        ])
    func `an observation is a line in plain words`(observation: Observation, text: String) {
        #expect(Self.text(observation) == text)
    }
}
