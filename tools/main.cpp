// shoal: decentralized training over the Internet, simulated and real.
#include "tools/program.hpp"

int main(int argc, char** argv) {
  return shoal::tools::run_program(argc, argv);
}
