// shoal serve DIR...: serves the page of runs that are over or still go on.
#include "scenarios/page/page_file.hpp"
#include "scenarios/page/page_server.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/shown_runs.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

namespace shoal::tools {

namespace {

struct serve_arguments {
  std::vector<std::string> runs;
  std::string listen = ":8080";
};

int serve(const serve_arguments& arguments) {
  auto page = scenarios::load_page();
  if (!page) return fail(page.error());
  auto runs = shown_runs::read(arguments.runs);
  if (!runs) return fail(runs.error());
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
  while (!interrupted()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
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
  command->callback([arguments, &chosen] { chosen = [arguments] { return serve(*arguments); }; });
}

} // namespace shoal::tools
