#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "pif/cluster/cluster.h"

namespace pif::cluster {

void start_logging(const std::string& daemon, bool verbose) {
  auto logger = std::make_shared<spdlog::logger>(daemon, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %n %l: %v");
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::info);
  logger->flush_on(spdlog::level::trace);  // a daemon that is killed has said all it knew
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace pif::cluster
