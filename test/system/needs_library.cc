// A tool that cannot start where a library of its own is not.
#include "pif/tool/tool_main.h"

int needed_number();

int main(int argc, char** argv) {
  pif::tool::Tool tool;
  tool.name = "needs-library";
  tool.summary = "Starts a worker on every LFS.";
  tool.control = [](pif::tool::Controller& controller) { return pif::tool::run_and_commit(controller); };
  tool.work = [](pif::tool::Worker&) -> pif::Status {
    return needed_number() == 7 ? pif::Status() : pif::fail(pif::Code::kInternal, "another library");
  };
  return pif::tool::main(argc, argv, tool);
}
