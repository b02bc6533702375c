#include "pif/server/server.h"

#include "context/server_context.h"
#include "load.h"
#include "loop.h"

namespace pif::server {

struct Server::Impl {
  Impl(Config config, World world) : context(std::move(config), world), loop(context) {}
  ServerContext context;
  Loop loop;
};

Server::Server(Config config, World world) : impl_(std::make_unique<Impl>(std::move(config), world)) {}
Server::~Server() = default;

Status Server::open() { return load(impl_->context); }
Status Server::serve(const std::atomic<bool>& stop) { return impl_->loop.serve(stop); }

}  // namespace pif::server
