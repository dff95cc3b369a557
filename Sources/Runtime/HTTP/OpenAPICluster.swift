/// The part of the API's description that is about the cluster: paths and schemas.

extension OpenAPIDocument {
    static let clusterPaths = """
          /api/cluster:
            get:
              operationId: cluster
              summary: The cluster as this tracker sees it.
              responses:
                "200":
                  description: As of now; the others as of their last messages.
                  content:
                    application/json:
                      schema:
                        $ref: "#/components/schemas/Cluster"
                "401":
                  $ref: "#/components/responses/Unauthorized"
                "403":
                  $ref: "#/components/responses/Forbidden"
                "503":
                  $ref: "#/components/responses/Unavailable"
          /api/members:
            post:
              operationId: changeMembers
              summary: Gives a tracker a vote, takes one, or both in two steps.
              parameters:
                - name: add
                  in: query
                  description: The tracker that is to vote. It has to follow and be in sync.
                  schema:
                    type: integer
                    minimum: 1
                - name: remove
                  in: query
                  description: The tracker that is to vote no more.
                  schema:
                    type: integer
                    minimum: 1
              responses:
                "200":
                  description: It is decided.
                  content:
                    application/json:
                      schema:
                        $ref: "#/components/schemas/Members"
                "400":
                  $ref: "#/components/responses/BadRequest"
                "401":
                  $ref: "#/components/responses/Unauthorized"
                "403":
                  $ref: "#/components/responses/Forbidden"
                "409":
                  $ref: "#/components/responses/Refused"
                "503":
                  $ref: "#/components/responses/Unavailable"
                "504":
                  $ref: "#/components/responses/Late"
          /api/handover:
            post:
              operationId: handOver
              summary: Makes another tracker master.
              parameters:
                - name: to
                  in: query
                  required: true
                  description: The tracker that is to be master. It has to vote and be in sync.
                  schema:
                    type: integer
                    minimum: 1
              responses:
                "200":
                  description: It is master.
                  content:
                    application/json:
                      schema:
                        $ref: "#/components/schemas/Handover"
                "400":
                  $ref: "#/components/responses/BadRequest"
                "401":
                  $ref: "#/components/responses/Unauthorized"
                "403":
                  $ref: "#/components/responses/Forbidden"
                "409":
                  $ref: "#/components/responses/Refused"
                "503":
                  $ref: "#/components/responses/Unavailable"
                "504":
                  $ref: "#/components/responses/Late"

        """

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
                  description: What it had applied by its last keepalive.
                lag:
                  type: integer
                  format: int64
                  description: Entries that it lags behind the one that tells this; negative where it is ahead.
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
            Bus:
              type: object
              description: The channel to the other trackers. Left out for a tracker that is alone.
              required: [isConnected, endpoint, sent, received, dropped, rejected, repaired, reconnections]
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
              required: [master]
              properties:
                master:
                  type: integer

        """
}
