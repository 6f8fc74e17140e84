// shoal promote: turns a scenario and measured hosts into a prediction, and into the files with
// which a launcher runs the scenario.
#include "netem/wire/address.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/promote/deployment.hpp"
#include "scenarios/promote/measure.hpp"
#include "scenarios/promote/preflight.hpp"
#include "scenarios/promote/promoted_scenario.hpp"
#include "scenarios/schema/inventory.hpp"
#include "scenarios/schema/load.hpp"
#include "tools/arguments.hpp"
#include "tools/build_identity.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/live_line.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::tools {

namespace {

namespace fs = std::filesystem;
using namespace scenarios;

struct promote_arguments {
  scenario_arguments scenario;
  std::string inventory, target, out, program = "shoal";
  std::uint64_t epochs = 100;
  bool insecure = false, pace = false, offline = false, quiet = false;
};

/// The reason why no host answers at that TCP port; nothing if one answers.
std::optional<std::string> unreachable(const std::string& host, const std::string& port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return fmt::format("cannot resolve '{}': {}", host, gai_strerror(error));
  std::string why = "no answer in 5 s";
  bool reached = false;
  for (const auto* each = found; each != nullptr && !reached; each = each->ai_next) {
    const int to = socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (to < 0) continue;
    int error = connect(to, each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      pollfd waiting{to, POLLOUT, 0};
      socklen_t size = sizeof(error);
      if (poll(&waiting, 1, 5000) == 1) getsockopt(to, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    reached = error == 0;
    if (error != 0 && error != EINPROGRESS) why = std::generic_category().message(error);
    close(to);
  }
  freeaddrinfo(found);
  return reached ? std::nullopt : std::optional(why);
}

/// A sentence for each host that cannot be found. With target ssh, also for each host that does not
/// answer.
std::vector<std::string> missing_hosts(const deployment& what, bool by_ssh) {
  std::vector<std::pair<std::string, std::future<std::optional<std::string>>>> asked;
  for (const auto& host : what.hosts) {
    if (by_ssh && host.ssh.empty()) {
      std::promise<std::optional<std::string>> said;
      said.set_value("it has no address: say 'ssh: [user@]host[:port]' in the inventory");
      asked.emplace_back(host.name, said.get_future());
    } else if (by_ssh) {
      asked.emplace_back(host.name,
                         std::async(std::launch::async, unreachable,
                                    host.ssh.substr(host.ssh.find('@') + 1), host.ssh_port));
    } else if (!host.host.empty()) {
      asked.emplace_back(host.name,
                         std::async(std::launch::async, [&host]() -> std::optional<std::string> {
                           const auto at = netem::wire::resolve({host.host, 1});
                           return at ? std::nullopt : std::optional(at.error());
                         }));
    }
  }
  std::vector<std::string> out;
  for (auto& [name, answer] : asked)
    if (const auto why = answer.get())
      out.push_back(fmt::format("{}: {}{}", name, by_ssh ? "ssh: " : "", *why));
  return out;
}

std::string readme(const deployment& what, const promote_arguments& arguments,
                   const std::string& predicted) {
  std::string how;
  if (arguments.target == "ssh")
    how = fmt::format(
        "{}./launch up\n./launch status\n./launch down\n./launch fetch\n",
        what.insecure ? "" : "./launch keys MODERATOR   # the folder of 'shoal keys init'\n");
  else if (arguments.target == "systemd")
    how = "# this folder on each host, as root:\n./install NODE\n# the node's keys, "
          "then:\nsystemctl enable --now shoal-" +
          what.name + "-NODE\n";
  else if (arguments.target == "slurm")
    how = std::string(what.insecure ? "" : "# keys/NODE for each node, of 'shoal keys admit'\n") +
          "sbatch job.sbatch\n";
  else
    how = "podman build -t shoal:latest -f Containerfile PATH_OF_A_CLONE_OF_SHOAL\nkubectl apply "
          "-f " +
          what.name + ".yaml\n";
  std::string hosts;
  for (const auto& host : what.hosts)
    hosts += fmt::format("| {} | {} | {} |\n", host.name, host.shard ? "data shard" : "peer",
                         host.address.empty() ? "dials only" : host.address);
  return fmt::format(
      "# {}\n\nWritten by `shoal promote --target {}`. Nothing has been started.\n\n## "
      "Predicted\n\n```\n{}```\n\n`prediction/` is the run directory of that. Afterwards "
      "`shoal compare prediction out` says how far it was off.\n\n## Running "
      "it\n\n```sh\n{}```\n\nThe text (`data.files` in scenario.yaml) has to be where the shard "
      "runs, and nowhere else.\n\n| node | runs | address |\n|---|---|---|\n{}",
      what.name, arguments.target, predicted, how, hosts);
}

int run(const promote_arguments& arguments) {
  static const std::vector<std::string> targets{"ssh", "systemd", "slurm", "kubernetes"};
  if (std::find(targets.begin(), targets.end(), arguments.target) == targets.end()) {
    unknown_word("--target", "target", arguments.target, targets);
    return exit_usage;
  }
  auto scenario = arguments.scenario.load();
  auto hosts = load_inventory(arguments.inventory);
  print_diagnostics(hosts.errors);
  print_diagnostics(hosts.warnings);
  if (!scenario || !hosts.value) return exit_bad_input;
  if (!runs_on_nodes(*scenario, arguments.scenario.file)) return exit_bad_input;
  std::error_code error;
  if (fs::exists(arguments.out, error) && !fs::is_empty(arguments.out, error))
    return fail(fmt::format("'{}' is there already, and not empty", arguments.out));
  const auto values = values_of(*scenario);
  if (!values) return fail(values.error());

  // All errors are reported at once.
  std::vector<std::string> wrong;
  auto promoted = promote(*scenario, *hosts.value, *values, wrong);
  auto plan = deployment_of(promoted ? promoted->what : *scenario, *hosts.value);
  if (!plan) wrong.push_back(plan.error());
  if (plan && !arguments.offline)
    for (auto& each : missing_hosts(*plan, arguments.target == "ssh"))
      wrong.push_back(std::move(each));
  if (!wrong.empty()) {
    for (const auto& each : wrong) fail(each);
    fmt::print(stderr, "nothing was written\n");
    return exit_bad_input;
  }
  for (const auto& note : promoted->notes) fmt::print(stderr, "note: {}\n", note);

  // The files are written into a folder beside the final one, so that the final folder is complete.
  const auto partial = arguments.out + ".partial";
  fs::remove_all(partial, error);
  fs::create_directories(partial, error);
  if (error)
    return fail(fmt::format("cannot make '{}': {}", partial, error.message()), exit_run_failed);
  const auto give_up = [&](const std::string& why) {
    fs::remove_all(partial, error);
    return fail(why, exit_run_failed);
  };
  live_line line(isatty(STDERR_FILENO) != 0);
  preflight_options options;
  options.epochs = arguments.epochs;
  options.out = (fs::path(partial) / "prediction").string();
  options.build = build_identity();
  if (!arguments.quiet) options.on_status = [&](const live_status& status) { line.show(status); };
  options.interrupted = interrupted;
  catch_interrupts();
  const auto predicted = preflight(promoted->what, *hosts.value, *values, std::move(options));
  line.clear();
  if (!predicted)
    return give_up("the preflight failed, and nothing was written: " + predicted.error());

  plan->program = arguments.program;
  plan->insecure = arguments.insecure;
  plan->pace = arguments.pace;
  plan->seconds = predicted->seconds;
  for (const auto& host : predicted->hosts)
    plan->memory_bytes = std::max(plan->memory_bytes, host.memory_bytes);
  const auto yaml = "# " + promoted->what.name +
                    " on measured hosts, as 'shoal promote' made it: the same on every node.\n" +
                    to_yaml(promoted->what);
  const auto text = table(*predicted, promoted->what);
  auto files = arguments.target == "ssh"       ? ssh_files(*plan)
               : arguments.target == "systemd" ? systemd_files(*plan)
               : arguments.target == "slurm"   ? slurm_files(*plan)
                                               : kubernetes_files(*plan, yaml);
  files.push_back({"scenario.yaml", yaml});
  files.push_back({"hosts.yaml", to_yaml(*hosts.value)});
  files.push_back({"README.md", readme(*plan, arguments, text)});
  for (const auto& each : files) {
    const auto path = fs::path(partial) / each.path;
    auto file = output_file::create(path);
    if (!file) return give_up(file.error());
    (*file)->write(each.text);
    if (auto done = (*file)->commit(); !done) return give_up(done.error());
    if (each.executable)
      fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add, error);
  }
  fs::remove(arguments.out, error); // the folder is empty
  fs::rename(partial, arguments.out, error);
  if (error) return give_up(fmt::format("cannot make '{}': {}", arguments.out, error.message()));
  std::string names;
  for (const auto& each : files) names += (names.empty() ? "" : ", ") + each.path;
  fmt::print("{} on {} hosts, predicted\n{}\n{}: {}\nnext: {}/README.md says how to run it\n",
             promoted->what.name, plan->hosts.size(), text, arguments.out, names, arguments.out);
  return exit_ok;
}

} // namespace

void add_promote(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<promote_arguments>();
  auto* command = app.add_subcommand(
      "promote",
      "predict a scenario on measured hosts, and write what a launcher needs to run it there");
  command->add_option("scenario", arguments->scenario.file, "YAML file of the scenario")
      ->required()
      ->type_name("FILE");
  command->add_option("--set", arguments->scenario.sets, "override an option; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--inventory", arguments->inventory, "the hosts, as 'shoal probe' writes them")
      ->required()
      ->type_name("FILE");
  command->add_option("--target", arguments->target, "ssh, systemd, slurm or kubernetes")
      ->required()
      ->type_name("TARGET");
  command->add_option("-o,--out", arguments->out, "a new folder for the files")
      ->required()
      ->type_name("DIR");
  command->add_option("--program", arguments->program, "the program's path on the hosts (shoal)")
      ->type_name("PATH");
  command
      ->add_option("--epochs", arguments->epochs,
                   "simulate at most so many, and extrapolate the rest (100)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1000000000u));
  command->add_flag("--pace", arguments->pace, "nodes compute no faster than was measured");
  command->add_flag("--insecure", arguments->insecure,
                    "without keys: anybody may take part, and read everything");
  command->add_flag("--offline", arguments->offline,
                    "do not look whether the hosts can be reached");
  command->add_flag("-q,--quiet", arguments->quiet, "no progress on stderr");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

} // namespace shoal::tools
