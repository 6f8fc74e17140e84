// Prints the end of each flow of a pattern in one of Shoal's models, in the format of the
// references.
#include "tests/accuracy/model.hpp"

#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char** argv) {
  using namespace shoal;
  const std::string name = argc == 3 ? argv[1] : "";
  netem::transfer_model model = netem::transfer_model::tcp;
  netem::tcp_options tcp;
  if (name == "tcp-ns3")
    tcp = netem::ns3_newreno();
  else if (name == "max_min")
    model = netem::transfer_model::max_min;
  else if (name == "lv08")
    model = netem::transfer_model::lv08;
  else if (name != "tcp") {
    std::fprintf(stderr, "usage: model_times max_min|lv08|tcp|tcp-ns3 PATTERN\n");
    return 2;
  }
  try {
    const auto ends = accuracy::run_pattern(accuracy::read_pattern(argv[2]), model, tcp);
    for (std::size_t i = 0; i < ends.size(); ++i) std::printf("%zu %.6f\n", i, ends[i]);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
