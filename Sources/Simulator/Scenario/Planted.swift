// A mistake that all scenarios have without being told one by one: test only, see `PlantedBug`.

import TrackerLogic

#if PLANTED_BUGS

    /// The mistake of all scenarios and walks that are made from now on, unless their options name another.
    ///
    /// The page makes scenarios from a link, which names no mistake. Only the package in Tests/PlantedBugs and its
    /// module for WebAssembly have this.
    public final class Planted: @unchecked Sendable {
        private static let everywhere = Planted()

        #if hasFeature(Embedded)
            // The page has nobody who would choose it: one that most seeds find.
            private var bug: PlantedBug? = .promiseForgotten
        #else
            private var bug: PlantedBug?
        #endif

        private init() {}

        /// Set before the first scenario, and by one thread.
        public static var bug: PlantedBug? {
            // Embedded Swift gives each module into which these are copied a variable of its own.
            @inline(never) get { everywhere.bug }
            @inline(never) set { everywhere.bug = newValue }
        }
    }

#endif
