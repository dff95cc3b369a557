// The files of the simulator's page, by name: `Playground/` beside this folder.

/// The files of the simulator's page, by name; a test compares the list with the folder.
enum PlaygroundFiles {
    static var index: [UInt8] { PackageResources.playground_html }

    static var all: [(name: String, bytes: [UInt8])] {
        [
            ("sim-branches.js", PackageResources.sim_branches_js),
            ("sim-client.js", PackageResources.sim_client_js),
            ("sim-diagram.js", PackageResources.sim_diagram_js),
            ("sim-drawing.js", PackageResources.sim_drawing_js),
            ("sim-engine.js", PackageResources.sim_engine_js),
            ("sim-list.js", PackageResources.sim_list_js),
            ("sim-model.js", PackageResources.sim_model_js),
            ("sim-now.js", PackageResources.sim_now_js),
            ("sim-page.js", PackageResources.sim_page_js),
            ("sim-panel.js", PackageResources.sim_panel_js),
            ("sim-place.js", PackageResources.sim_place_js),
            ("sim-run.js", PackageResources.sim_run_js),
            ("sim-scrubber.js", PackageResources.sim_scrubber_js),
            ("sim-setup.js", PackageResources.sim_setup_js),
            ("sim-start.js", PackageResources.sim_start_js),
            ("sim-sweep.js", PackageResources.sim_sweep_js),
            ("sim-sweeper.js", PackageResources.sim_sweeper_js),
            ("sim-tale.js", PackageResources.sim_tale_js),
            ("sim-transport.js", PackageResources.sim_transport_js),
            ("sim-walk.js", PackageResources.sim_walk_js),
            ("sim-whatif.js", PackageResources.sim_whatif_js),
            ("sim-words.js", PackageResources.sim_words_js),
            ("sim.css", PackageResources.sim_css),
            ("simulator.mjs", PackageResources.simulator_mjs),
        ]
    }
}
