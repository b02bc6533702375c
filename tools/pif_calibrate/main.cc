// pif-calibrate: measures what the tools' predictions need, once for a file system.
#include <memory>

#include <CLI/CLI.hpp>

#include "calibrate.h"
#include "machine.h"

int main(int argc, char** argv) {
  const auto wanted = std::make_shared<pif::calibrate::CalibrateOptions>();
  pif::tool::Tool tool;
  tool.name = "pif-calibrate";
  tool.summary =
      "Measures memory, disks, messages and the tools' kernels, and keeps it in the file system's folder: --explain "
      "and "
      "--report of all tools predict from that.";
  tool.examples =
      "  pif-calibrate                   measure, for half a minute when nothing else runs\n"
      "  pif-calibrate --if-needed       only if nothing was measured, or on other hardware\n"
      "  pif-calibrate --explain         what was measured, and the thesis's table 5.5 with it\n";
  tool.options = [wanted](CLI::App& app) {
    app.add_flag("--if-needed", wanted->if_needed,
                 "do nothing if there is a calibration of this hardware and these programs");
  };
  tool.control = [wanted](pif::tool::Controller& controller) { return pif::calibrate::control(controller, *wanted); };
  tool.work = pif::calibrate::measure_machine;
  tool.explain = pif::calibrate::explain;
  return pif::tool::main(argc, argv, tool);
}
