"""The log behind "Try an example": our own, after the failure told in vllm-project/vllm#39288."""

EXAMPLE_LOG = """\
(APIServer pid=2101) INFO 04-20 09:12:03 [api_server.py:1351] vLLM API server version 0.19.0
(APIServer pid=2101) INFO 04-20 09:12:03 [utils.py:233] non-default args: \
{'model': 'Qwen/Qwen3-Next-80B-A3B-Instruct', 'dtype': 'bfloat16', 'tensor_parallel_size': 4}
(EngineCore pid=2210) INFO 04-20 09:12:31 [core.py:105] Initializing a V1 LLM engine (v0.19.0) \
on 4 x NVIDIA H100 80GB HBM3
(Worker_TP0 pid=2291) INFO 04-20 09:13:05 [unquantized.py:283] Using FlashInfer CUTLASS Unquantized MoE \
backend out of potential backends: ['FlashInfer TRTLLM', 'FlashInfer CUTLASS', 'TRITON', 'BATCHED_TRITON'].
(Worker_TP0 pid=2291) INFO 04-20 09:15:40 [custom_all_reduce.py:215] Registering 0 cuda graph addresses
Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  97%|#########7| 143/147 [00:41<00:01,  3.41it/s]
Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'an illegal memory access was encountered'
(EngineCore pid=2210) ERROR 04-20 09:15:44 [multiproc_executor.py:246] \
Worker proc VllmWorker-3 died unexpectedly, shutting down executor.
(EngineCore pid=2210) ERROR 04-20 09:15:44 [core.py:1099] EngineCore failed to start.
(APIServer pid=2101) RuntimeError: Engine core initialization failed. See root cause above. \
Failed core proc(s): {'EngineCore': 1}
"""
