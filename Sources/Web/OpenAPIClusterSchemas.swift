/// The part of the API's description that is about the cluster: schemas.

import Bus

extension OpenAPIDocument {
    static let clusterSchemas = """
            Cluster:
              type: object
              required:
                - id
                - mode
                - epoch
                - master
                - isServing
                - isFenced
                - voters
                - commitIndex
                - digest
                - messages
                - elections
                - trackers
                - unlike
                - findings
              properties:
                id:
                  type: integer
                  description: The number of the tracker that tells this; 0 while it has none.
                mode:
                  type: string
                  enum: [quorum, survivor, alone]
                epoch:
                  $ref: "#/components/schemas/Epoch"
                master:
                  type: integer
                  description: Whom it follows, or itself; 0 while it knows of none.
                isServing:
                  type: boolean
                  description: Whether it answers clients.
                isFenced:
                  type: boolean
                  description: Whether it is cut off from the others, or has not been welcomed since.
                voters:
                  type: array
                  items:
                    type: integer
                commitIndex:
                  type: integer
                  format: int64
                  description: The last log entry that was decided and applied.
                digest:
                  type: string
                  description: The state's fingerprint, 16 hexadecimal digits.
                bus:
                  $ref: "#/components/schemas/Bus"
                messages:
                  $ref: "#/components/schemas/Messages"
                elections:
                  $ref: "#/components/schemas/Elections"
                trackers:
                  type: array
                  description: All that were heard of since the bus was found, and the one that tells this, by id.
                  items:
                    $ref: "#/components/schemas/Tracker"
                unlike:
                  type: array
                  description: Trackers that were started with other settings than this one.
                  items:
                    $ref: "#/components/schemas/Unlike"
                findings:
                  type: array
                  description: What is wrong, the cause of silence first.
                  items:
                    $ref: "#/components/schemas/Finding"
            Unlike:
              type: object
              required: [id, settings]
              properties:
                id:
                  type: integer
                  description: 0 for one that has no number yet.
                settings:
                  type: array
                  description: In which it differs, by their flags.
                  items:
                    type: string
            Finding:
              type: object
              required: [code, isSilence, text]
              properties:
                code:
                  type: string
                  enum:
                    - starting
                    - stopping
                    - diskBroken
                    - diskFails
                    - busLost
                    - otherKey
                    - otherCluster
                    - otherVersion
                    - refused
                    - otherMembers
                    - otherSettings
                    - waitsForMembers
                    - noMajority
                    - fetchesState
                    - election
                    - kernelDrops
                isSilence:
                  type: boolean
                  description: Whether it is why this tracker answers no clients.
                text:
                  type: string
            Tracker:
              type: object
              description: One tracker as another, or itself, sees it.
              required:
                - id
                - incarnation
                - isThis
                - role
                - epoch
                - silentSeconds
                - commitIndex
                - lag
                - agreement
                - isWhole
                - hasVote
              properties:
                id:
                  type: integer
                incarnation:
                  type: string
                  description: Drawn at each start of its process, 16 hexadecimal digits.
                isThis:
                  type: boolean
                  description: Whether it is the one that tells this.
                role:
                  type: string
                  enum: [newcomer, slave, candidate, master, down]
                epoch:
                  $ref: "#/components/schemas/Epoch"
                silentSeconds:
                  type: number
                  description: Since its last message; 0 for the one that tells this.
                commitIndex:
                  type: integer
                  format: int64
                  description: What it had applied when it last said so.
                lag:
                  type: integer
                  format: int64
                  description: >-
                    Entries that it was behind the one that tells this when it last said where it is; 0 where it was ahead. Of
                    the one that tells this: entries that it is behind its master.
                agreement:
                  type: string
                  enum: [same, ahead, different, unknown]
                  description: >-
                    How its history compares: the same or the beginning of it; longer; another; or it ends so far back that
                    nobody can tell.
                isWhole:
                  type: boolean
                  description: Whether it holds the whole state.
                hasVote:
                  type: boolean
                report:
                  $ref: "#/components/schemas/Report"
            Report:
              type: object
              description: >-
                What a tracker says of itself, to the others over the bus once a keepalive. Left out where it has said
                nothing yet. Figures are those of the last ten seconds.
              required:
                - version
                - host
                - clients
                - console
                - problem
                - durability
                - disk
                - announcesPerSecond
                - answerSeconds
                - commitSeconds
                - writeSeconds
                - roundTripSeconds
                - openFiles
                - maxFiles
                - receiveBufferBytes
                - wantedReceiveBufferBytes
                - lostDatagrams
                - clockDifferenceSeconds
              properties:
                version:
                  type: string
                host:
                  type: string
                  description: The name of its machine.
                clients:
                  type: string
                  description: The announce URL that its operator tells, else where it listens for clients.
                console:
                  type: string
                  description: Where its console listens; empty for nowhere.
                problem:
                  type: string
                  description: Why it answers nobody; empty where it does.
                durability:
                  type: string
                  enum: [disk, process]
                disk:
                  type: string
                  enum: [works, full, locked, readOnly, broken]
                announcesPerSecond:
                  type: integer
                  description: Announces that it answered.
                answerSeconds:
                  $ref: "#/components/schemas/Latency"
                commitSeconds:
                  $ref: "#/components/schemas/Latency"
                writeSeconds:
                  $ref: "#/components/schemas/Latency"
                roundTripSeconds:
                  $ref: "#/components/schemas/Latency"
                openFiles:
                  type: integer
                maxFiles:
                  type: integer
                receiveBufferBytes:
                  type: integer
                  description: The smallest of its UDP sockets'; 0 without UDP.
                wantedReceiveBufferBytes:
                  type: integer
                lostDatagrams:
                  type: integer
                  format: int64
                  description: Datagrams of clients that the kernel dropped in the last five minutes.
                clockDifferenceSeconds:
                  type: number
                  description: By how much its clock is ahead; the way over the bus makes it seem a little behind.
            Latency:
              type: object
              description: Both are 0 where nothing was measured.
              required: [median, p99]
              properties:
                median:
                  type: number
                p99:
                  type: number
            Bus:
              type: object
              description: The channel to the other trackers. Left out for a tracker that is alone.
              required: [isConnected, endpoint, sent, received, dropped, rejected, repaired, reconnections, refusals]
              properties:
                isConnected:
                  type: boolean
                endpoint:
                  type: string
                  description: Where to, without credentials.
                broker:
                  type: string
                  description: The broker in use. Left out where there is none, or it is lost.
                sent:
                  type: integer
                  format: int64
                  description: Messages handed to the network.
                received:
                  type: integer
                  format: int64
                  description: Authentic messages that came.
                dropped:
                  type: integer
                  format: int64
                  description: Messages not sent because too many waited.
                rejected:
                  type: integer
                  format: int64
                  description: Frames that are forged, foreign, malformed or replayed.
                repaired:
                  type: integer
                  format: int64
                  description: Lost datagrams that were asked for again, and came.
                reconnections:
                  type: integer
                  format: int64
                lastProblem:
                  type: string
                  description: Why it was last lost, or could not be reached. Left out where there was nothing.
                refusals:
                  type: array
                  description: Whose frames were refused for their key or their cluster's name.
                  items:
                    $ref: "#/components/schemas/Refusal"
            Refusal:
              type: object
              required: [sender, reason, count, silentSeconds]
              properties:
                sender:
                  type: string
                  description: Its address, where the bus tells it, else its session on the bus.
                reason:
                  type: string
                  enum: [otherKey, otherCluster]
                count:
                  type: integer
                  format: int64
                silentSeconds:
                  type: number
                  description: Since the last of them.
            Messages:
              type: object
              description: Messages of the cluster since the process started.
              required: [received, sent, malformed, otherVersion, dropped]
              properties:
                received:
                  type: integer
                  format: int64
                sent:
                  type: integer
                  format: int64
                malformed:
                  type: integer
                  format: int64
                  description: Authentic bytes that are no message of this version.
                otherVersion:
                  type: integer
                  format: int64
                  description: Frames and messages of trackers that speak another version; none of them is heard.
                dropped:
                  type: integer
                  format: int64
                  description: Dropped because the tracker did not keep up.
            Elections:
              type: object
              description: What the tracker has lived through since its process started.
              required: [suspicions, candidacies, victories, stepDowns, transfers, merges, divergences]
              properties:
                suspicions:
                  type: integer
                  description: It missed its master.
                candidacies:
                  type: integer
                  description: It stood for master.
                victories:
                  type: integer
                  description: It became master.
                stepDowns:
                  type: integer
                  description: It ceased to be master.
                transfers:
                  type: integer
                  description: Whole states that it fetched.
                merges:
                  type: integer
                  description: It took in what the other side of a partition knew.
                divergences:
                  type: integer
                  description: It held something else than its master.
            Members:
              type: object
              required: [members]
              properties:
                members:
                  type: array
                  description: The ids that vote now.
                  items:
                    type: integer
            Handover:
              type: object
              required: [master, wasMaster]
              properties:
                master:
                  type: integer
                wasMaster:
                  type: boolean
                  description: Whether it was master already.
            Stop:
              type: object
              required: [isStopping]
              properties:
                isStopping:
                  type: boolean

        """
}
