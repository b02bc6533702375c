// A tool that does nothing: a worker on every LFS starts and ends. What starting a tool costs.
#include "pif/tool/tool_main.h"

int main(int argc, char** argv) {
  pif::tool::Tool tool;
  tool.name = "example-noop";
  tool.summary = "Starts a worker on every LFS that is up, and does nothing with them.";
  tool.control = [](pif::tool::Controller& controller) { return pif::tool::run_and_commit(controller); };
  tool.work = [](pif::tool::Worker&) { return pif::Status(); };
  return pif::tool::main(argc, argv, tool);
}
