// A mistake that all scenarios have without being told one by one: test only, see `PlantedBug`.

import TrackerLogic

#if PLANTED_BUGS

    /// The mistake of all scenarios and walks that are made from now on, unless their options name another.
    ///
    /// The page makes scenarios from a link, which names no mistake. Only the package in Tests/PlantedBugs and its module
    /// for WebAssembly have this.
    public final class Planted: @unchecked Sendable {
        /// The only one; set before the first scenario, and by one thread.
        public static let everywhere = Planted()

        #if hasFeature(Embedded)
            /// The page has nobody who would choose it: one that most seeds find.
            public var bug: PlantedBug? = .promiseForgotten
        #else
            /// None at first.
            public var bug: PlantedBug?
        #endif

        private init() {}
    }

#endif
