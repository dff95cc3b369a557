// Who a tracker is in its cluster, and what keeps it from taking part.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct AdmissionTests {
    @Test(arguments: [(0, false), (1, true), (.max, true)] as [(UInt32, Bool)])
    func `any number but 0 is one`(_ id: UInt32, _ hasNumber: Bool) {
        for wasBlank in [false, true] {
            let admission = Admission(id: id, wasBlank: wasBlank)
            #expect(admission.id == id)
            #expect(admission.hasNumber == hasNumber)
            #expect(admission.wasBlank == wasBlank)
            #expect(admission.refusal == nil)
        }
    }

    @Test func `a number is taken, and given up where another life has it`() {
        var admission = Admission(id: 0, wasBlank: true)
        admission.take(number: 4)
        #expect(admission.id == 4 && admission.hasNumber)
        admission.giveUpNumber()
        #expect(admission.id == 0 && !admission.hasNumber)
    }

    @Test func `a refusal is news once, and another reason is news again`() {
        var admission = Admission(id: 3, wasBlank: false)
        #expect(admission.refused(.idTaken, now: .at(100)) == true)
        #expect(admission.refusal == .idTaken)
        #expect(admission.refusedAt == .at(100))
        #expect(admission.refused(.idTaken, now: .at(200)) == false)
        #expect(admission.refusedAt == .at(200), "it is refused still")
        #expect(admission.refused(.clusterFull, now: .at(300)) == true)
        #expect(admission.refusal == .clusterFull)
        #expect(admission.refusedAt == .at(300))
        #expect(admission.id == 3)
    }

    @Test func `whoever is welcomed is refused no more, and a later refusal is news`() {
        var admission = Admission(id: 3, wasBlank: false)
        _ = admission.refused(.idTaken, now: .at(100))
        admission.welcomed()
        #expect(admission.refusal == nil)
        #expect(admission.refused(.idTaken, now: .at(200)) == true)
    }

    @Test(arguments: [(3999, JoinRefusal.otherMembers), (4000, nil), (4001, nil)] as [(Int64, JoinRefusal?)])
    func `a refusal is forgotten when it was not said for so long`(_ now: Int64, _ left: JoinRefusal?) {
        var admission = Admission(id: 3, wasBlank: false)
        _ = admission.refused(.otherMembers, now: .at(1000))
        _ = admission.refused(.otherMembers, now: .at(2000))
        admission.forgetRefusal(now: .at(now), after: .seconds(2))
        #expect(admission.refusal == left)
    }
}
