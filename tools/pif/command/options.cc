#include "command/options.h"

#include "pif/base/decimal.h"
#include "pif/base/limits.h"

namespace pif::cli {

void add_bevy_option(CLI::App* command, std::uint32_t& bevy, const std::string& description) {
  command->add_option("--bevy", bevy, description)
      ->check(CLI::Range(2u, kWidthMax / 2))
      ->transform(whole_number)
      ->type_name("B");
}

void add_rate_option(CLI::App* command, std::uint64_t& rate, const std::string& what) {
  command->add_option("--rate", rate, what + " so many bytes a second, such as 50MiB (default: 0, no limit)")
      ->transform(byte_count)
      ->type_name("BYTES");
}

}  // namespace pif::cli
