"""The tools of chatbots, over HTTP and stdio."""
