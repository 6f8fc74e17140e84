// The subcommands. Each subcommand is one file, adds itself to the command line, and returns an
// exit code.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace shoal::tools {

/// The work of a subcommand, which the subcommand sets when the user chose it.
using action = std::function<int()>;

void add_run(CLI::App& app, action& chosen);
void add_new(CLI::App& app, action& chosen);
void add_check(CLI::App& app, action& chosen);
void add_schema(CLI::App& app, action& chosen);
void add_completion(CLI::App& app, action& chosen);
void add_man(CLI::App& app, action& chosen);
void add_sweep(CLI::App& app, action& chosen);
void add_replay(CLI::App& app, action& chosen);
void add_diff(CLI::App& app, action& chosen);
void add_node(CLI::App& app, action& chosen);
void add_probe(CLI::App& app, action& chosen);
void add_plan(CLI::App& app, action& chosen);
void add_promote(CLI::App& app, action& chosen);
void add_status(CLI::App& app, action& chosen);
void add_drain(CLI::App& app, action& chosen);
void add_compare(CLI::App& app, action& chosen);
void add_versus(CLI::App& app, action& chosen);
void add_report(CLI::App& app, action& chosen);
void add_serve(CLI::App& app, action& chosen);
void add_serve_model(CLI::App& app, action& chosen);
void add_chat(CLI::App& app, action& chosen);
void add_explain(CLI::App& app, action& chosen);
void add_trace(CLI::App& app, action& chosen);
void add_chaos(CLI::App& app, action& chosen);
void add_bench(CLI::App& app, action& chosen);
void add_evaluate(CLI::App& app, action& chosen);
void add_bench_robust(CLI::App& bench, action& chosen);
/// `bench rebalancing` and `bench square-cube`.
void add_bench_pipeline(CLI::App& bench, action& chosen);
void add_generate(CLI::App& app, action& chosen);
void add_verify_data(CLI::App& app, action& chosen);
void add_memory(CLI::App& app, action& chosen);
void add_keys(CLI::App& app, action& chosen);
void add_tokenizer(CLI::App& app, action& chosen);
void add_export(CLI::App& app, action& chosen);
void add_draw(CLI::App& app, action& chosen);
void add_images(CLI::App& app, action& chosen);
void add_model(CLI::App& app, action& chosen);

} // namespace shoal::tools
