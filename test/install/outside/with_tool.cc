// Links pif::tool as a tool of somebody else's would, and starts none of it: there is no file system here.
#include <chrono>
#include <iostream>

#include <pif/tool/controller.h>
#include <pif/tool/exit_code.h>
#include <pif/tool/report.h>

int main() {
  pif::tool::Report report;
  report.add("work", std::chrono::seconds(1));
  std::cout << report.to_json() << "\n";
  return static_cast<int>(pif::tool::ExitCode::kDone);
}
