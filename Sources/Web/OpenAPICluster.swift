/// The part of the API's description that is about the cluster: paths.

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
              summary: Gives a tracker a vote, takes one, or both in two steps. Any tracker hands it to the master.
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
          /api/stop:
            post:
              operationId: stop
              summary: Stops all trackers of the cluster in good order. Any tracker hands it to the master.
              description: >-
                The swarms go with the cluster, unless its trackers were started with --keep-swarms.
              responses:
                "200":
                  description: They are being told; each stops when it has answered whoever waits.
                  content:
                    application/json:
                      schema:
                        $ref: "#/components/schemas/Stop"
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
              summary: Makes a tracker master. Any tracker hands it to the master.
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
}
