// Stand-in for pluginlib: a function that creates the plugin.
#pragma once

#include <memory>

#define PLUGINLIB_EXPORT_CLASS(Class, Base) \
  std::unique_ptr<Base> create_plugin() { return std::unique_ptr<Base>(new Class); }
