// Prints the end of each flow of a pattern in one of Shoal's models, in the format of the
// references. `--probe FROM:TO` adds the delays of small messages, 20 ms apart.
#include "tests/accuracy/model.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

int main(int argc, char** argv) {
  using namespace shoal;
  const char* const usage =
      "usage: model_times max_min|lv08|tcp|tcp-ns3 PATTERN [--queue PACKETS] [--up-queue "
      "modem|host] [--probe FROM:TO]\n";
  netem::transfer_model model = netem::transfer_model::tcp;
  netem::tcp_options tcp;
  accuracy::probing probe;
  bool host_queues = false;
  std::string name, file;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--queue") {
      tcp.queue.packets = std::atof(value.c_str());
      ++i;
    } else if (word == "--up-queue" && (value == "host" || value == "modem")) {
      host_queues = value == "host";
      ++i;
    } else if (word == "--probe" && value.find(':') != std::string::npos) {
      probe.from = std::strtoul(value.c_str(), nullptr, 10);
      probe.to = std::strtoul(value.substr(value.find(':') + 1).c_str(), nullptr, 10);
      probe.every = std::chrono::milliseconds(20);
      ++i;
    } else if (name.empty()) {
      name = word;
    } else {
      file = word;
    }
  }
  if (name == "tcp-ns3")
    tcp = netem::ns3_newreno();
  else if (name == "max_min")
    model = netem::transfer_model::max_min;
  else if (name == "lv08")
    model = netem::transfer_model::lv08;
  else if (name != "tcp" || file.empty()) {
    std::fputs(usage, stderr);
    return 2;
  }
  try {
    const auto what = accuracy::read_pattern(file);
    if (probe.from >= what.hosts.size() || probe.to >= what.hosts.size()) {
      std::fprintf(stderr, "%s: --probe names a host that is not there\n", file.c_str());
      return 1;
    }
    const auto ends = accuracy::run_pattern(what, model, tcp, host_queues, &probe);
    for (const auto& [sent, delay] : probe.delays)
      std::printf("# probe %.6f %.6f\n", to_seconds(sent), to_seconds(delay));
    for (std::size_t i = 0; i < ends.size(); ++i) std::printf("%zu %.6f\n", i, ends[i]);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
