// shoal serve DIR...: serves the page of runs that are over or still go on.
#include "scenarios/page/page_file.hpp"
#include "scenarios/page/page_server.hpp"
#include "tools/arguments.hpp"
#include "tools/ask_swarm.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/shown_runs.hpp"
#include "tools/wire_arguments.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <mutex>
#include <thread>

namespace shoal::tools {

namespace {

struct serve_arguments {
  std::vector<std::string> runs;
  std::string listen = ":8080", join;
  key_arguments keys;
};

/// Asks a running swarm for its hosts every few seconds. A host that has left keeps its last row.
class swarm_watch {
public:
  swarm_watch(netem::wire::address join, std::optional<netem::wire::credentials> keys)
      : join_(std::move(join)), keys_(std::move(keys)), asks_([this] { ask_on(); }) {}
  ~swarm_watch() {
    {
      std::lock_guard lock(guard_);
      over_ = true;
    }
    woken_.notify_all();
    asks_.join();
  }
  swarm_watch(const swarm_watch&) = delete;
  swarm_watch& operator=(const swarm_watch&) = delete;

  /// The rows of all hosts that were seen, if there are newer ones than at the last call.
  std::optional<std::vector<scenarios::distant_node>> news() {
    std::lock_guard lock(guard_);
    if (!std::exchange(newer_, false)) return std::nullopt;
    std::vector<scenarios::distant_node> out;
    for (const auto& [name, one] : seen_) out.push_back(one);
    return out;
  }

private:
  static constexpr auto pause = std::chrono::seconds(3);

  void ask_on() {
    bool told = false;
    for (;;) {
      const auto hosts = ask_swarm(join_, keys_);
      if (!hosts && !std::exchange(told, true))
        fmt::print(stderr, "warning: --join: {}; asking again\n", hosts.error());
      std::unique_lock lock(guard_);
      if (hosts) note(*hosts);
      woken_.wait_for(lock, pause, [this] { return over_; });
      if (over_) return;
    }
  }

  /// Requires: guard_ is held.
  void note(const std::map<std::string, seen_host>& hosts) {
    const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 std::chrono::system_clock::now().time_since_epoch())
                                 .count();
    for (auto& [name, one] : seen_)
      if (!hosts.contains(name)) one.shown.state = "interrupted";
    for (const auto& [name, host] : hosts) {
      scenarios::distant_node& one = seen_[name];
      auto& row = one.shown;
      row.name = name;
      row.address = host.where;
      row.state = "linked";
      row.samples_per_second = std::numeric_limits<double>::quiet_NaN();
      if (one.came_utc_ns == 0) one.came_utc_ns = now;
      one.seen_utc_ns = now;
      if (!host.says) continue;
      const scenarios::node_report& says = *host.says;
      row.group = says.role == "shard" ? "shard" : "";
      row.state = "running";
      row.epoch = says.epoch;
      row.samples = says.samples;
      row.samples_per_second = says.samples_per_second;
      row.bytes_sent = says.bytes_sent;
      row.rounds = row.rounds_not_ok = 0;
      for (const auto& [outcome, count] : says.rounds_by_outcome)
        (outcome == "ok" ? row.rounds : row.rounds_not_ok) += count;
      one.came_utc_ns = now - from_seconds(says.up_seconds).count();
    }
    newer_ = true;
  }

  const netem::wire::address join_;
  const std::optional<netem::wire::credentials> keys_;
  std::mutex guard_;
  std::condition_variable woken_;
  std::map<std::string, scenarios::distant_node> seen_; // by name
  bool newer_ = false, over_ = false;
  std::thread asks_; // the last member: the thread uses all others
};

int serve(const serve_arguments& arguments) {
  auto page = scenarios::load_page();
  if (!page) return fail(page.error());
  std::optional<netem::wire::credentials> keys;
  std::optional<netem::wire::address> join;
  if (!arguments.join.empty()) {
    auto at = netem::wire::parse_address(arguments.join);
    if (!at) return fail("--join: " + at.error(), exit_usage);
    join = *std::move(at);
    if (const int code = arguments.keys.load(keys); code != exit_ok) return code;
  } else if (!arguments.keys.folder.empty() || arguments.keys.insecure) {
    return fail("--keys and --insecure need --join HOST:PORT, a host of the running swarm",
                exit_usage);
  }
  auto runs = shown_runs::read(arguments.runs);
  if (!runs) return fail(runs.error());
  if (join && !runs->has_cluster())
    return fail(fmt::format("--join: no folder of a cluster's nodes is among {}",
                            fmt::join(arguments.runs, ", ")));
  std::vector<std::shared_ptr<scenarios::page_feed>> feeds;
  const auto add = [&](const shown_runs::run& run) {
    feeds.push_back(std::make_shared<scenarios::page_feed>(run.place));
    feeds.back()->publish(run.sections);
    if (run.over) feeds.back()->finish();
  };
  for (const auto& run : runs->all()) add(run);
  auto server = scenarios::page_server::listen(arguments.listen, std::move(*page), feeds);
  if (!server) return fail(fmt::format("--listen: {}", server.error()));
  fmt::print("{}\n", (*server)->url());
  std::fflush(stdout);
  catch_interrupts();
  std::optional<swarm_watch> watch;
  if (join) watch.emplace(*join, std::move(keys));
  while (!interrupted()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (watch)
      if (auto news = watch->news()) runs->set_distant(std::move(*news));
    // Directories that a run still writes grow.
    for (const std::size_t i : runs->read_again()) {
      if (i == feeds.size()) {
        // Another host has joined.
        add(runs->all()[i]);
        (*server)->add(feeds.back());
        continue;
      }
      feeds[i]->publish(runs->all()[i].sections);
      if (runs->all()[i].over) feeds[i]->finish();
    }
  }
  return exit_ok;
}

} // namespace

void add_serve(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<serve_arguments>();
  auto* command = app.add_subcommand("serve", "show runs in a browser");
  command
      ->add_option("RUN", arguments->runs,
                   "run directories, or folders of them (a folder of a cluster's nodes is one "
                   "run). The others are compared with the first one, the prediction")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--listen", arguments->listen,
                   "where to serve the page (default: :8080, which only this machine reaches)")
      ->type_name("HOST:PORT");
  command
      ->add_option("--join", arguments->join,
                   "any host of the running swarm: its other hosts get rows, too")
      ->type_name("HOST:PORT");
  arguments->keys.add_to(*command);
  command->callback([arguments, &chosen] { chosen = [arguments] { return serve(*arguments); }; });
}

} // namespace shoal::tools
