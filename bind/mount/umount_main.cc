// pif-umount: ends a mount, when everything that was written has been sent.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "pif/base/print.h"
#include "pif/base/version.h"
#include "process/mount_point.h"

int main(int argc, char** argv) {
  pif::fill_standard_streams();
  CLI::App app("Ends a mount of a file system, when everything that was written has been sent.", "pif umount");
  app.footer("Example:\n  pif umount /mnt/data");
  app.set_version_flag("--version", fmt::format("pif-umount {}", pif::version()), "Print the version and leave");
  std::string folder;
  app.add_option("folder", folder, "Where it is mounted")->required()->type_name("DIR");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto done = pif::mount::unmount(folder);
  if (done) return 0;
  pif::print_error("pif-umount: " + pif::one_line(done.error().to_string()) + "\n");
  return done.error().code == pif::Code::kInvalid ? 2 : 3;
}
