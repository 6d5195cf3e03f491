// Drives the example plugin as a controller manager does.  Usage: ros2_main FILE HASH; prints states after 1 s.
#include <cstdio>
#include <memory>

#include "hardware_interface/system_interface.hpp"

std::unique_ptr<hardware_interface::SystemInterface> create_plugin();

int main(int argc, char **argv) {
  using namespace hardware_interface;
  if (argc != 3) return 2;
  HardwareInfo info;
  auto plugin = create_plugin();
  if (plugin->on_init(info) != CallbackReturn::ERROR) return 3;  // lacks the file
  info.hardware_parameters = {{"file", argv[1]}, {"hash", argv[2]}};
  for (const char *name : {"slide", "hinge"}) info.joints.push_back({name, {{"effort"}}, {}});
  plugin = create_plugin();
  if (plugin->on_init(info) != CallbackReturn::SUCCESS) return 4;
  auto states = plugin->export_state_interfaces();
  auto commands = plugin->export_command_interfaces();
  for (int k = 0; k < 400; k++) {
    commands[0].set_value(0.1);
    commands[1].set_value(-0.2);
    plugin->read({}, rclcpp::Duration(0.0025));
    if (plugin->write({}, rclcpp::Duration(0.0025)) != return_type::OK) return 5;
  }
  plugin->read({}, rclcpp::Duration(0.0025));
  for (auto &s : states) std::printf("%s %.17g\n", s.get_name().c_str(), s.get_value());
  info.joints[0].name = "none";
  return create_plugin()->on_init(info) == CallbackReturn::ERROR ? 0 : 6;
}
